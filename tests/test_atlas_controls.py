"""The list of controls: read from a stand-in with the layouts of its families, gated and missing ones among them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from control_repos import CONTROLS, GATED, MISSING, stock
from hub_stand_in import HubStandIn

from lnsim.cli_atlas import read_list

ROOT = Path(__file__).resolve().parents[1]


def test_every_line_says_what_is_known_no_repo_twice_and_the_public_disputes_are_there() -> None:
    wanted = read_list(CONTROLS)
    assert all(one.known for one in wanted)
    assert len({one.source for one in wanted}) == len(wanted)
    repos = {one.source.partition("@")[0] for one in wanted}
    assert {"upstage/Solar-Open-100B", "zai-org/GLM-4.5-Air", "Qwen/Qwen2.5-14B"} <= repos


@pytest.mark.slow
def test_all_but_the_gated_and_the_missing_ones_are_read_and_docs_say_what_it_costs(
    hub: HubStandIn, tmp_path: Path
) -> None:
    wanted = stock(hub)
    code, out, err = run("atlas", "add", "--from", str(CONTROLS), "--atlas", str(tmp_path / "atlas"), "--json")
    assert code == 1
    refused = {*GATED, MISSING}
    assert len(err.strip().splitlines()) == len(refused), err
    assert all(repo in err for repo in refused)
    added = [json.loads(line) for line in out.splitlines()]
    assert [one["source"] for one in added] == [one.source for one in wanted if one.source not in refused]
    requests, megabytes = len(hub.requests), sum(one.sent for one in hub.requests) / 1e6
    told = f"{round(requests, -2):,} requests and {megabytes:.0f} MB"
    assert told in " ".join((ROOT / "docs" / "hub.md").read_text("utf-8").split()), told
    code, out, err = run("atlas", "pairs", "--atlas", str(tmp_path / "atlas"), "--json")
    assert (code, err) == (0, "")
    assert not [one for one in json.loads(out) if one["strength"] in ("strong", "identical")]
