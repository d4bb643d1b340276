"""Clients of the HTTP API; documents are read as strictly as JSON is meant."""
# SPDX-License-Identifier: Apache-2.0
import json

import requests

from node import SLOW


def once(pairs):
    """An object; no key is there twice."""
    keys = [key for key, _ in pairs]
    doubled = {key for key in keys if keys.count(key) > 1}
    assert not doubled, "twice in an object: %s" % doubled
    return dict(pairs)


def not_json(word):
    raise AssertionError("%s is not JSON" % word)


def strict_json(raw):
    """What the bytes mean: UTF-8, no key twice, no NaN or Infinity."""
    return json.loads(raw.decode("utf-8", "strict"), object_pairs_hook=once, parse_constant=not_json)


class Api:
    def __init__(self, node, user="guest", password="guest"):
        self.base = node.http_url + "/api/"
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.auth = (user, password)

    def request(self, method, where, body=None, **kw):
        return self.session.request(method, self.base + where, json=body, timeout=60 * SLOW, **kw)

    def __call__(self, method, where, want=200, body=None, **kw):
        answer = self.request(method, where, body, **kw)
        assert answer.status_code == want, (method, where, answer.status_code, answer.text[:300])
        return strict_json(answer.content) if answer.content else None

    def get(self, where, **kw):
        return self("GET", where, **kw)
