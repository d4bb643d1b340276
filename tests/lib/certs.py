"""Certificates for tests, made by the openssl command: an authority, servers, clients."""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import ssl
import subprocess

#: seconds of a key of this kind are none
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def openssl(*args):
    done = subprocess.run(["openssl"] + [str(a) for a in args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Authority:
    """Signs in `folder`; ca is its own certificate's file."""

    def __init__(self, folder, name="Hermes tests"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ca = self.folder / "ca.pem"
        self.ca_key = self.folder / "ca.key"
        openssl("req", "-x509", "-nodes", *KEY, "-keyout", self.ca_key, "-out", self.ca, "-days", 2,
                "-subj", "/CN=%s" % name, "-addext", "basicConstraints=critical,CA:TRUE",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, name, subject=None, san=None, days=2, key=KEY):
        """The files NAME.pem and NAME.key; days 0: it has expired."""
        cert, secret = self.folder / (name + ".pem"), self.folder / (name + ".key")
        request, extensions = self.folder / (name + ".csr"), self.folder / (name + ".ext")
        openssl("req", "-new", "-nodes", *key, "-keyout", secret, "-out", request,
                "-subj", subject or "/CN=%s" % name)
        extensions.write_text("basicConstraints=CA:FALSE\n" + ("subjectAltName=%s\n" % san if san else ""))
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.ca_key, "-CAcreateserial",
                "-out", cert, "-days", days, "-extfile", extensions)
        return cert, secret

    def server(self, name="server", **kw):
        return self.issue(name, san=kw.pop("san", "DNS:localhost,IP:127.0.0.1"), **kw)

    def context(self, cert=None, key=None, version=None):
        """For a client that trusts us."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if cert:
            context.load_cert_chain(str(cert), str(key))
        if version:
            context.minimum_version = context.maximum_version = version
        return context
