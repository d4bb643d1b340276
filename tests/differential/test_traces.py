"""What a RabbitMQ 3.10 did with each script of traces/, and what a node does with it."""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import pathlib

import pytest

import compare
from node import SLOW, Node

AT_ONCE = 10
TRACES = sorted((pathlib.Path(__file__).resolve().parent / "traces").glob("*.json"))


@pytest.fixture(scope="module")
def verdicts(request, tmp_path_factory):
    """Futures of what came of the traces that are to be tested."""
    chosen = [item.callspec.params["trace"] for item in request.session.items if hasattr(item, "callspec")]
    node = Node(tmp_path_factory.mktemp("differential")).start()
    try:
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            yield {trace: pool.submit(compare.replay, *compare.load(trace), ("127.0.0.1", node.port), 3 * SLOW)
                   for trace in chosen}
        node.stop()
    finally:
        node.kill()


@pytest.mark.parametrize("trace", TRACES, ids=[trace.stem for trace in TRACES])
def test_trace(verdicts, trace):
    verdict = verdicts[trace].result()
    assert verdict.kind == "same", "at step %d, %s:\nRabbitMQ %s\nHermes   %s" % (
        verdict.step, compare.text(verdict.steps[verdict.step]), compare.text(verdict.expected[verdict.step:][:1]),
        compare.text(verdict.got[-1:]))


def test_a_difference_is_seen():
    """An outcome in which one kind of thing is changed or missing must be refused."""
    refused = set()
    for trace in TRACES:
        steps, expected = compare.load(trace)
        for index, outcome in enumerate(expected):
            for kind in set(outcome) - refused:
                judge = compare.Judge(steps, expected)
                changed = dict(outcome, **{kind: {"a9/c9": [["m9", 0, "", "changed"]]}})
                missing = {key: value for key, value in outcome.items() if key != kind}
                if not judge(index, changed) and not judge(index, missing):
                    refused.add(kind)
    assert refused >= {"r", "d", "n", "err", "ret", "conf", "cancel"}
