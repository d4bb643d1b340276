// SPDX-License-Identifier: Apache-2.0
// Orders go out and come in, and go on when the node is started again or another takes its place.
//
//     java -cp amqp-client.jar:slf4j-api.jar:slf4j-nop.jar Orders.java [HOST:PORT[,HOST:PORT...] [COUNT]]
//
// Debian has the jars in /usr/share/java: apt-get install librabbitmq-client-java libslf4j-java
import com.rabbitmq.client.*;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeoutException;

public class Orders {
    static final String QUEUE = "orders.java";

    /** The first node of the list that answers. Later on the library connects again by itself. */
    static Connection connect(Address[] nodes) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setRequestedHeartbeat(10);
        factory.setNetworkRecoveryInterval(500);
        while (true) {
            try {
                return factory.newConnection(nodes);
            } catch (IOException | TimeoutException none) {
                System.out.println("no node answers, trying again");
                Thread.sleep(500);
            }
        }
    }

    /** Returns when the node has the order, however often the connection is lost on the way. */
    static void publish(Channel channel, int number) throws InterruptedException {
        byte[] body = Integer.toString(number).getBytes(StandardCharsets.UTF_8);
        while (true) {
            try {
                channel.basicPublish("", QUEUE, true, MessageProperties.PERSISTENT_BASIC, body);
                channel.waitForConfirmsOrDie(10000);
                return;
            } catch (IOException | TimeoutException | ShutdownSignalException lost) {
                System.out.println("not confirmed, again: " + number);
                Thread.sleep(500);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Address[] nodes = Address.parseAddresses(args.length > 0 ? args[0] : "localhost:5672");
        int count = args.length > 1 ? Integer.parseInt(args[1]) : 100;

        Connection connection = connect(nodes);
        // The library declares and consumes again what was declared and consumed on these.
        Channel in = connection.createChannel();
        Channel out = connection.createChannel();
        in.queueDeclare(QUEUE, true, false, false, null);
        in.basicQos(10);
        out.confirmSelect();

        Set<Integer> received = ConcurrentHashMap.newKeySet();
        CountDownLatch last = new CountDownLatch(1);
        String tag = in.basicConsume(QUEUE, false, new DefaultConsumer(in) {
            @Override
            public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body)
                    throws IOException {
                int number = Integer.parseInt(new String(body, StandardCharsets.UTF_8));
                // An order may come twice: after a lost connection, or because it was published again.
                if (received.add(number))
                    System.out.println("received " + number);
                in.basicAck(envelope.getDeliveryTag(), false);
                if (number == count)
                    last.countDown();
            }
        });

        for (int number = 1; number <= count; number++) {
            publish(out, number);
            Thread.sleep(50);
        }
        last.await();
        in.basicCancel(tag);
        System.out.println("unsubscribed");
        connection.close();
    }
}
