// SPDX-License-Identifier: Apache-2.0
// The steps of README.md with RabbitMQ's client for Java. Its connections come back by themselves.
import com.rabbitmq.client.*;
import com.rabbitmq.client.impl.LongStringHelper;
import java.io.FileInputStream;
import java.io.InputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.BooleanSupplier;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class ClientJava {
    static String host;
    static int port;
    static final String PREFIX = "clients.java." + ProcessHandle.current().pid() + ".";
    static final String WORK = PREFIX + "work";
    static final String REPLY_TO = "amq.rabbitmq.reply-to";

    static void ok(String name) {
        System.out.println("ok " + name);
        System.out.flush();
    }

    static void ask(String what) {
        System.out.println(what);
        System.out.flush();
    }

    static void same(Object got, Object wanted) {
        if (!Objects.equals(got, wanted))
            throw new AssertionError("got " + got + ", wanted " + wanted);
    }

    static void waitFor(BooleanSupplier condition) throws InterruptedException {
        for (int i = 0; !condition.getAsBoolean(); i++) {
            if (i == 6000)
                throw new AssertionError("waited 30 s in vain");
            Thread.sleep(5);
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    static SSLContext trusting(String file) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        SSLContext context = SSLContext.getInstance("TLS");
        store.load(null, null);
        try (InputStream in = new FileInputStream(file)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        trust.init(store);
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    static Connection connect(int heartbeat) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(host);
        factory.setPort(port);
        factory.setRequestedHeartbeat(heartbeat);
        factory.setNetworkRecoveryInterval(50);
        if (System.getenv("CLIENTS_CA") != null) {
            factory.useSslProtocol(trusting(System.getenv("CLIENTS_CA")));
        }
        return factory.newConnection();
    }

    static long count(Channel ch, String queue) throws Exception {
        return ch.queueDeclarePassive(queue).getMessageCount();
    }

    /** A consumer that keeps what comes. */
    static class Collector extends DefaultConsumer {
        final List<Delivery> got = new CopyOnWriteArrayList<>();
        final List<String> cancelled = new CopyOnWriteArrayList<>();
        final String tag;

        Collector(Channel ch, String queue, boolean autoAck) throws Exception {
            super(ch);
            tag = ch.basicConsume(queue, autoAck, this);
        }

        Collector(Channel ch) throws Exception {
            this(ch, WORK, false);
        }

        @Override
        public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties props, byte[] body) {
            got.add(new Delivery(envelope, props, body));
        }

        @Override
        public void handleCancel(String tag) {
            cancelled.add(tag);
        }

        List<Delivery> await(int n) throws Exception {
            waitFor(() -> got.size() >= n);
            same(got.size(), n);
            return got;
        }

        String facts(int i) {
            return (got.get(i).getEnvelope().isRedeliver() ? "again " : "first ") + text(got.get(i).getBody());
        }

        long deliveryTag(int i) {
            return got.get(i).getEnvelope().getDeliveryTag();
        }
    }

    static Map<String, Object> headers() {
        Map<String, Object> headers = new LinkedHashMap<>();
        headers.put("bool", true);
        headers.put("no", false);
        headers.put("byte", (byte) -7);
        headers.put("short", (short) -300);
        headers.put("int", Integer.MIN_VALUE);
        headers.put("long", Long.MIN_VALUE);
        headers.put("float", 1.5f);
        headers.put("double", -0.1);
        headers.put("text", LongStringHelper.asLongString("Gr\u00fc\u00dfe \u2603"));
        headers.put("empty", LongStringHelper.asLongString(""));
        headers.put("nothing", null);
        headers.put("decimal", new BigDecimal("3.14"));
        headers.put("time", new Date(1709209815000L));
        headers.put("list", Arrays.asList(1, LongStringHelper.asLongString("two"), Arrays.asList(3L)));
        headers.put("table", Map.of("a", Map.of("b", Map.of("c", 4)), "e", Map.of()));
        return headers;
    }

    public static void main(String[] args) throws Exception {
        host = args[0];
        port = Integer.parseInt(args[1]);
        try {
            run();
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);     // threads of a connection would keep the program alive
        }
        System.exit(0);
    }

    static void run() throws Exception {
        Connection conn = connect(60);
        Channel ch = conn.createChannel();
        ch.queueDeclare(WORK, true, false, false, null);
        same(conn.getServerProperties().get("product").toString(), "RabbitMQ");
        ok("connect");

        ch.confirmSelect();
        List<Return> returned = new CopyOnWriteArrayList<>();
        ch.addReturnListener(returned::add);
        AMQP.BasicProperties persistent = new AMQP.BasicProperties.Builder().deliveryMode(2).build();
        for (int i = 0; i < 100; i++)
            ch.basicPublish("", WORK, true, persistent, bytes("" + i));
        ch.waitForConfirmsOrDie(30000);
        same(returned.size(), 0);
        same(count(ch, WORK), 100L);
        ok("confirm");

        ch.basicPublish("", PREFIX + "nowhere", true, null, bytes("lost"));
        ch.waitForConfirmsOrDie(30000);
        same(returned.size(), 1);
        same(returned.get(0).getReplyCode() + " " + returned.get(0).getReplyText() + " " +
            text(returned.get(0).getBody()), "312 NO_ROUTE lost");
        ok("return");

        Collector all = new Collector(ch);
        all.await(100);
        for (int i = 0; i < 100; i++)
            same(all.facts(i), "first " + i);
        for (int i = 0; i < 50; i++)
            ch.basicAck(all.deliveryTag(i), false);
        ch.basicAck(all.deliveryTag(99), true);
        ch.basicCancel(all.tag);
        same(count(ch, WORK), 0L);
        ok("consume");

        for (int i = 0; i < 10; i++)
            ch.basicPublish("", WORK, null, bytes("" + i));
        ch.waitForConfirmsOrDie(30000);
        ch.basicQos(3);
        Collector few = new Collector(ch);
        few.await(3);
        same(count(ch, WORK), 7L);
        few.await(3);
        ch.basicAck(few.deliveryTag(0), false);
        few.await(4);
        same(count(ch, WORK), 6L);
        few.await(4);
        for (int i = 1; i < 10; i++) {
            int n = i + 1;
            waitFor(() -> few.got.size() >= n);
            ch.basicAck(few.deliveryTag(i), false);
        }
        ch.basicCancel(few.tag);
        ch.basicQos(0);
        same(count(ch, WORK), 0L);
        ok("prefetch");

        for (String body : List.of("a", "b", "c"))
            ch.basicPublish("", WORK, null, bytes(body));
        Collector some = new Collector(ch);
        some.await(3);
        same(some.facts(0) + some.facts(1) + some.facts(2), "first afirst bfirst c");
        ch.basicNack(some.deliveryTag(2), true, true);
        some.await(6);
        same(some.facts(3) + some.facts(4) + some.facts(5), "again aagain bagain c");
        ch.basicReject(some.deliveryTag(3), false);
        ch.basicReject(some.deliveryTag(4), true);
        some.await(7);
        same(some.facts(6), "again b");
        ch.basicAck(some.deliveryTag(6), true);
        ch.basicCancel(some.tag);
        same(count(ch, WORK), 0L);
        ok("nack");

        ch.basicPublish("", WORK, null, bytes("one"));
        ch.basicPublish("", WORK, null, bytes("two"));
        ch.waitForConfirmsOrDie(30000);
        GetResponse one = ch.basicGet(WORK, false);
        same(text(one.getBody()) + one.getMessageCount() + one.getEnvelope().isRedeliver(), "one1false");
        same(one.getEnvelope().getRoutingKey(), WORK);
        ch.basicAck(one.getEnvelope().getDeliveryTag(), false);
        same(text(ch.basicGet(WORK, true).getBody()), "two");
        same(ch.basicGet(WORK, false), null);
        ok("get");

        AMQP.BasicProperties sent = new AMQP.BasicProperties.Builder()
            .contentType("text/plain").contentEncoding("utf-8").headers(headers()).deliveryMode(2).priority(9)
            .correlationId("c".repeat(255)).replyTo("somewhere").expiration("60000").messageId("m-1")
            .timestamp(new Date(1709209815000L)).type("kind").userId("guest").appId("steps").clusterId("cluster")
            .build();
        ch.basicPublish("", WORK, sent, bytes("x"));
        ch.waitForConfirmsOrDie(30000);
        AMQP.BasicProperties back = ch.basicGet(WORK, true).getProps();
        same(back.getHeaders(), sent.getHeaders());
        same(back.builder().headers(null).build().toString(), sent.builder().headers(null).build().toString());
        ok("properties");

        byte[] big = new byte[10 << 20];
        for (int i = 0; i < big.length; i++)
            big[i] = (byte) (i ^ i >> 8);
        Collector large = new Collector(ch, WORK, true);
        ch.basicPublish("", WORK, null, new byte[0]);
        ch.basicPublish("", WORK, null, big);
        ch.basicPublish("", WORK, null, new byte[0]);
        large.await(3);
        same(large.got.get(0).getBody().length + large.got.get(2).getBody().length, 0);
        same(Arrays.equals(large.got.get(1).getBody(), big), true);
        ch.basicCancel(large.tag);
        ok("bodies");

        // On a connection of its own: after a cut the library starts consumers again that have ended like these.
        Connection other = connect(60);
        Channel serving = other.createChannel();
        serving.basicConsume(WORK, true, new DefaultConsumer(serving) {
            @Override
            public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties props, byte[] body)
                    throws java.io.IOException {
                serving.basicPublish("", props.getReplyTo(), new AMQP.BasicProperties.Builder()
                    .correlationId(props.getCorrelationId()).build(), bytes(text(body).toUpperCase()));
            }
        });
        Channel asking = other.createChannel();
        RpcClient client = new RpcClient(asking, "", WORK, 30000);       // over direct reply-to
        same(text(client.primitiveCall(bytes("question"))), "QUESTION");
        same(text(client.primitiveCall(bytes("more"))), "MORE");
        asking.close();
        serving.close();
        ok("rpc");

        Collector none = new Collector(ch);
        ch.basicCancel(none.tag);
        ch.basicPublish("", WORK, null, bytes("after"));
        ch.waitForConfirmsOrDie(30000);
        same(count(ch, WORK), 1L);
        none.await(0);
        Collector gone = new Collector(other.createChannel());
        ch.queueDelete(WORK);
        waitFor(() -> !gone.cancelled.isEmpty());
        same(gone.cancelled, List.of(gone.tag));
        other.close();
        ok("cancel");

        Channel wrong = conn.createChannel();
        try {
            wrong.queueDeclarePassive(PREFIX + "missing");
            throw new AssertionError("a queue that does not exist was found");
        } catch (java.io.IOException failure) {
            AMQP.Channel.Close close =
                (AMQP.Channel.Close) ((ShutdownSignalException) failure.getCause()).getReason();
            same(close.getReplyCode(), 404);
            same(close.getReplyText().startsWith("NOT_FOUND - no queue '" + PREFIX + "missing'"), true);
        }
        conn.createChannel().close();
        ok("error");

        ch.queueDeclare(WORK, true, false, false, null);
        ch.basicPublish("", WORK, persistent, bytes("first"));
        ch.basicPublish("", WORK, persistent, bytes("second"));
        Collector both = new Collector(ch);
        both.await(2);
        ch.basicAck(both.deliveryTag(0), false);
        same(count(ch, WORK), 0L);
        CountDownLatch recovered = new CountDownLatch(1);
        ((Recoverable) conn).addRecoveryListener(new RecoveryListener() {
            public void handleRecovery(Recoverable recoverable) {
                recovered.countDown();
            }

            public void handleRecoveryStarted(Recoverable recoverable) {
            }
        });
        ask("cut");
        same(recovered.await(30, TimeUnit.SECONDS), true);
        both.await(3);
        same(both.facts(2), "again second");
        ch.basicAck(both.deliveryTag(2), false);
        same(count(ch, WORK), 0L);
        ch.queueDelete(WORK);
        ok("reconnect");

        Connection quiet = connect(2);
        List<ShutdownSignalException> lost = new CopyOnWriteArrayList<>();
        quiet.addShutdownListener(lost::add);
        Thread.sleep(5000);
        same(lost.size(), 0);
        quiet.createChannel().close();
        ask("freeze");
        waitFor(() -> !lost.isEmpty());
        same(lost.get(0).getCause() instanceof MissedHeartbeatException, true);
        conn.abort(1);          // frozen as well
        quiet.abort(1);
        ok("heartbeat");

        conn = connect(60);
        conn.createChannel().close();
        conn.close();
        ok("close");
    }
}
