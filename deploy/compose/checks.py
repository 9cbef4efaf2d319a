"""What must hold of a composition that is up: `checks.py COMPOSE SERVICE…`, told by check.sh.

Prints a line a check. Exit 0 where all hold, 1 at the first that does not. Nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

PAGE = f"http://127.0.0.1:{os.environ['PAGE_PORT']}"
PROMETHEUS = f"http://127.0.0.1:{os.environ['PROMETHEUS_PORT']}"
COMPOSE = sys.argv[1].split()
SERVICES = sys.argv[2:]
LASTING = [service for service in SERVICES if service != "keys"]

UP_S = 180.0
SOON_S = 60.0
STOP_S = 30
QUIET_S = 5.0
LOOKS_S = 20.0
ANSWERS = 5
"""Of one ESCALATE, at most."""
SINR_TOLERANCE_DB = 2.0
SINR_FRESH_MS = 800
"""Of the contract slicing/1, which the planning agent goes by."""


class Failed(Exception):
    """A check that does not hold."""


class Refused(Failed):
    """The guard refused a request."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


def main() -> int:
    """All checks, in order: later ones rest on what earlier ones found."""
    began = time.monotonic()
    done = 0
    try:
        for said in checks():
            done += 1
            print(f"ok {done:2}  {said}", flush=True)
    except Failed as failure:
        print(f"FAILED after {done} checks: {failure}", flush=True)
        return 1
    print(f"compose-check: {done} passed, 0 failed, {time.monotonic() - began:.0f} s after the start", flush=True)
    return 0


def checks() -> Iterator[str]:
    yield healthy()
    token = operators_token()
    yield "keys: made, the one-shot ended with 0, an operator's token printed"
    yield confined()
    yield page_served()
    yield decisions_flow()
    yield ran_applies()
    yield prometheus_scrapes()
    yield who_may_act(token)
    yield escalation(token, "approve")
    yield escalation(token, "approve", LOOKS_S)
    yield escalation(token, "deny")
    yield kill_switch(token)
    yield guard_killed()
    yield tally_of_the_ran()
    yield stops()


def healthy() -> str:
    began = time.monotonic()
    for service in LASTING:
        wait(f"{service} healthy", lambda s=service: state(s)["Health"]["Status"] == "healthy", UP_S)  # type: ignore[misc]
    return f"healthy: {', '.join(LASTING)} ({time.monotonic() - began:.0f} s)"


def operators_token() -> str:
    if state("keys")["ExitCode"] != 0:
        raise Failed(f"keys ended with {state('keys')['ExitCode']}")
    for line in logs("keys").splitlines():
        _, colon, token = line.partition("token: ")
        if colon:
            return token.strip()
    raise Failed("keys printed no token")


def confined() -> str:
    for service in SERVICES:
        found = inspect(service)
        host = found["HostConfig"]
        user = found["Config"]["User"].split(":")[0]
        expect(user not in ("", "0", "root"), f"{service} runs as root")
        expect(host["ReadonlyRootfs"], f"the root file system of {service} is writable")
        expect(host["CapDrop"] == ["ALL"], f"{service} keeps capabilities: {host['CapDrop']}")
        expect("no-new-privileges:true" in host["SecurityOpt"], f"{service} may gain privileges")
        expect(host["Memory"] > 0 and host["PidsLimit"] > 0, f"{service} is without a bound on memory or processes")
        for bound in (host["PortBindings"] or {}).values():
            expect(all(one["HostIp"] == "127.0.0.1" for one in bound), f"{service} listens beyond loopback: {bound}")
    for service in ("guard", "ran"):
        code = "import os; print(os.getuid()); open('/opt/wirelessops/x', 'w')"
        tried = docker("exec", container(service), "python3", "-c", code, check=False)
        expect(tried.stdout.strip() == "10001", f"{service}: its uid is {tried.stdout.strip()!r}")
        expect("Read-only file system" in tried.stderr, f"{service} can write into its image")
    return "confined: no root, read-only roots, no capabilities, no new privileges, bounded, ports on loopback alone"


def page_served() -> str:
    text, kind = fetch(f"{PAGE}/")
    expect(kind.startswith("text/html"), f"the page is {kind}")
    expect("<script" in text.lower(), "the page has no script")
    return f"the page: {PAGE}/ ({len(text):,} characters)"


def decisions_flow() -> str:
    cursor = board()["cursor"]
    request = urllib.request.Request(f"{PAGE}/v1/events?cursor={cursor}", headers={"Accept": "text/event-stream"})
    seen = 0
    with urllib.request.urlopen(request, timeout=SOON_S) as stream:
        ends = time.monotonic() + SOON_S
        event = ""
        while seen < 20 and time.monotonic() < ends:
            name, _, value = stream.readline().decode().partition(":")
            if name == "event":
                event = value.strip()
            elif name == "data" and event == "decisions":
                seen += len(json.loads(value)["decisions"])
    expect(seen >= 20, f"only {seen} decisions by server-sent events within {SOON_S:g} s")
    return f"decisions: {seen} by server-sent events"


def ran_applies() -> str:
    def applied() -> int:
        return sum(lease["state"] in ("applied", "effect") for lease in board()["leases"])

    count = wait("the RAN applies", applied)
    return f"the RAN: {count} controls applied, as it acknowledged"


def prometheus_scrapes() -> str:
    def up() -> bool:
        targets = get(f"{PROMETHEUS}/api/v1/targets")["data"]["activeTargets"]
        return bool(targets) and all(one["health"] == "up" for one in targets)

    wait("Prometheus scrapes the guard", up)

    def groups() -> list[Any]:
        return list(get(f"{PROMETHEUS}/api/v1/rules")["data"]["groups"])

    rules = [rule for group in wait("rules loaded", groups) for rule in group["rules"]]
    wait("rules evaluated", lambda: all(r["health"] == "ok" for g in groups() for r in g["rules"]))

    def decided() -> float:
        found = get(f"{PROMETHEUS}/api/v1/query?query=sum(ricxapp_wirelessops_decisions_total)")["data"]["result"]
        return float(found[0]["value"][1]) if found else 0.0

    count = wait("decisions counted", decided)
    return f"Prometheus: the guard is scraped ({count:,.0f} decisions), {len(rules)} rules loaded, all evaluate"


def who_may_act(token: str) -> str:
    expect(get(f"{PAGE}/v1/operator", token)["operator"] == "operator", "the token is not the operator's")
    for given in (None, "nonsense"):
        try:
            post("/v1/switch", {"mode": "hold", "reason": "none"}, given)
        except Refused as refused:
            expect(refused.code == 401, f"token {given}: {refused}")
        else:
            raise Failed(f"token {given}: may act")
    return "who may act: the operator by his token; without one, or with another, nobody (401)"


def escalation(token: str, verdict: str, looks_s: float = 0.0) -> str:
    """Answer an ESCALATE that has no deadline, that of the planning agent, after having looked at it for `looks_s`.

    An approval settles what was looked at. Only the network may come between, and the record must show it: values that
    moved by more than the tolerance, evidence or an answer that came too late. The guard then asks again, and is
    answered again.
    """
    wanted = "APPLY" if verdict == "approve" else "ABSTAIN"
    proposal_id = wait("an ESCALATE of the planning agent", waiting_for_a_person, UP_S)
    asked = standing(proposal_id)
    seen = get(f"{PAGE}/v1/decisions/{asked['id']}")
    time.sleep(looks_s)
    why: list[str] = []
    while len(why) < ANSWERS:
        (dispute,) = seen["disputes"]
        settles = [f"{dispute['name']}={e2(dispute)}:dB"] if verdict == "approve" else []
        body = {"decision": asked["id"], "verdict": verdict, "reason": "compose-check", "settles": settles}
        try:
            post("/v1/answers", body, token)
        except Refused as refused:
            expect(refused.code == 409 and standing(proposal_id)["attempt"] > asked["attempt"], str(refused))
        came = wait("what came of the answer", lambda after=asked: later(proposal_id, after))  # type: ignore[misc]
        if came["action"] == wanted:
            values = " against ".join(f"{one['value']} {one['unit']}" for one in dispute["observations"])
            looked = f"looked at for {looks_s:g} s, " if looks_s else ""
            again = f" (asked again: {'; '.join(why)})" if why else ""
            return f"ESCALATE ({dispute['field']}: {values}): {looked}{verdict}, and it ends as {wanted}{again}"
        asked = wait("an ESCALATE again, or the end", lambda: settled_on(proposal_id))
        expect(asked["action"] == "ESCALATE", f"{verdict}: it ended as {asked['action']}: {asked['explanation']}")
        now = get(f"{PAGE}/v1/decisions/{asked['id']}")
        why.append(what_changed(came, dispute, now))
        seen = now
    raise Failed(f"{verdict}, {ANSWERS} times: {'; '.join(why)}")


def what_changed(came: Any, before: Any, now: Any) -> str:
    """Why an answer did not settle its dispute, by the records. Raises Failed where they show no reason."""
    if came["action"] != "ESCALATE":
        expect(set(came["codes"]) <= {"stale", "outage"}, f"it became {came['action']}: {came['explanation']}")
        return f"evidence was late ({', '.join(came['codes'])})"
    (dispute,) = now["disputes"]
    said, looked = by_source(dispute), by_source(before)
    moved_db = max(abs(said[source] - looked.get(source, said[source])) for source in said)
    if moved_db > SINR_TOLERANCE_DB:
        return f"it had moved by {moved_db:.1f} dB"
    newest = max((one for one in now["answers"] if one["settles"]), key=lambda one: one["at_ms"])
    late_ms = now["summary"]["decided_at_ms"] - newest["at_ms"]
    expect(late_ms > SINR_FRESH_MS, f"an answer {late_ms} ms old, of values that had not moved, settled nothing")
    return f"the answer was {late_ms} ms old"


def by_source(dispute: Any) -> dict[str, float]:
    """What each source says, dB."""
    return {one["source"]: float(one["value"]) for one in dispute["observations"]}


def e2(dispute: Any) -> float:
    """What the primary source says; the other one is the simulation's liar."""
    return float(next(one["value"] for one in dispute["observations"] if one["source"].startswith("e2:")))


def waiting_for_a_person() -> str | None:
    """The agent's newest proposal that waits for a person."""
    waiting = [one for one in board()["open"] if one["action"] == "ESCALATE" and one["proposer"] == "agent:planner"]
    return max(waiting, key=lambda one: one["decided_at_ms"])["proposal_id"] if waiting else None


def decisions_on(proposal_id: str) -> list[Any]:
    """All decisions on a proposal, newest last."""
    return [one for one in board()["decisions"] if one["proposal_id"] == proposal_id]


def standing(proposal_id: str) -> Any:
    return decisions_on(proposal_id)[-1]


def later(proposal_id: str, than: Any) -> Any:
    """The first decision on a proposal after another."""
    return next((one for one in decisions_on(proposal_id) if one["attempt"] > than["attempt"]), None)


def settled_on(proposal_id: str) -> Any:
    """The decision that stands, where that is an ESCALATE or the end; else None."""
    newest = standing(proposal_id)
    return newest if newest["final"] or newest["action"] == "ESCALATE" else None


def kill_switch(token: str) -> str:
    def in_force(mode: str) -> bool:
        there = [one for one in board()["switches"] if one["mode"] != "live" and one["region"] is None]
        return bool(there) == (mode != "live")

    said = post("/v1/switch", {"mode": "hold", "reason": "compose-check"}, token)
    expect(not said["failed"], f"not written to partitions {said['failed']}")
    wait("the kill switch in force", lambda: in_force("hold"))
    since = newest()
    wait("decisions under the kill switch", lambda: any(one["switched"] == "hold" for one in after(since)))
    since = newest()
    time.sleep(QUIET_S)
    under = after(since)
    applied = [one["id"] for one in under if one["action"] == "APPLY"]
    expect(not applied, f"APPLY under the kill switch: {applied[:3]}")
    expect(bool(under), "nothing is decided under the kill switch")
    post("/v1/switch", {"mode": "live", "reason": "compose-check"}, token)
    wait("the kill switch released", lambda: in_force("live"))
    since = newest()
    wait("APPLY again", lambda: any(one["action"] == "APPLY" for one in after(since)))
    return f"kill switch: of {len(under)} decisions in {QUIET_S:g} s none was APPLY; released, APPLY again"


def guard_killed() -> str:
    """SIGKILL, as by the kernel where memory runs out: Docker starts it again, as the composition tells it to.

    Where only Docker may signal it (no root), it takes that for the wish of an operator: it is started by hand.
    """
    before = inspect("guard")
    if os.geteuid() == 0:
        os.kill(before["State"]["Pid"], 9)
        wait("the guard restarted", lambda: inspect("guard")["RestartCount"] > before["RestartCount"])
    else:
        docker("kill", "-s", "KILL", container("guard"))
        docker("start", container("guard"))
    began = time.monotonic()
    wait("the guard healthy again", lambda: state("guard")["Health"]["Status"] == "healthy")
    wait("the page again", lambda: bool(board()["decisions"]))
    since = newest()
    wait("APPLY again", lambda: any(one["action"] == "APPLY" for one in after(since)))
    return f"the guard killed (SIGKILL): ready again and deciding after {time.monotonic() - began:.0f} s"


def tally_of_the_ran() -> str:
    def counts() -> Any:
        told = [line[line.index("{") :] for line in logs("ran").splitlines() if '"counts"' in line]
        return json.loads(told[-1]) if told else None

    last = wait("the RAN's counts", counts)
    expect(last["unsafe_with_guard"] == 0, f"{last['unsafe_with_guard']} unsafe executions")
    expect(last["safe_kept"] > 0, "nothing was carried out")
    return (
        f"the truth: of {last['proposals']} proposals {last['unsafe_without_guard']} would have been unsafe, "
        f"{last['unsafe_with_guard']} were; {last['safe_kept']} safe ones carried out"
    )


def stops() -> str:
    began = time.monotonic()
    ran([*COMPOSE, "stop", "--timeout", str(STOP_S)])
    took = time.monotonic() - began
    expect(took < STOP_S, f"stopping took {took:.0f} s")
    codes = {service: inspect(service)["State"]["ExitCode"] for service in LASTING}
    for service in ("guard", "ran"):
        expect(codes[service] == 0, f"{service} ended with {codes[service]}")
    return f"stopped within {took:.0f} s: guard and ran ended with 0 (all: {codes})"


def board() -> Any:
    return get(f"{PAGE}/v1/board")


def newest() -> int:
    """When the newest decision was made, Unix ms."""
    return max((one["decided_at_ms"] for one in board()["decisions"]), default=0)


def after(at_ms: int) -> list[Any]:
    """Decisions made later than at an instant."""
    return [one for one in board()["decisions"] if one["decided_at_ms"] > at_ms]


def wait(what: str, holds: Callable[[], Any], timeout_s: float = SOON_S) -> Any:
    """What `holds` gives once that is anything; it may fail to connect until then. Raises Failed."""
    ends = time.monotonic() + timeout_s
    last = ""
    while time.monotonic() < ends:
        try:
            if found := holds():
                return found
        except (OSError, KeyError, ValueError) as error:
            last = f": {error!r}"
        time.sleep(0.5)
    raise Failed(f"{what}: not within {timeout_s:g} s{last}")


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Failed(otherwise)


def get(url: str, token: str | None = None) -> Any:
    return json.loads(fetch(url, token)[0])


def fetch(url: str, token: str | None = None) -> tuple[str, str]:
    return exchanged(urllib.request.Request(url, headers=bearer(token)))


def post(path: str, body: Any, token: str | None) -> Any:
    headers = {"Content-Type": "application/json", **bearer(token)}
    request = urllib.request.Request(PAGE + path, json.dumps(body).encode(), headers, method="POST")
    return json.loads(exchanged(request)[0])


def exchanged(request: urllib.request.Request) -> tuple[str, str]:
    """The body of the reply and its type. A guard that says 503, since Kafka is slow, is asked again.

    Raises Refused.
    """
    ends = time.monotonic() + SOON_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:
                return reply.read().decode(), reply.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > ends:
                said = error.read().decode()
                raise Refused(error.code, f"{request.get_method()} {request.selector}: {error.code} {said}") from error
        time.sleep(0.5)


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def state(service: str) -> Any:
    return inspect(service)["State"]


def inspect(service: str) -> Any:
    return json.loads(docker("inspect", container(service)).stdout)[0]


def container(service: str) -> str:
    """The id of a service's one container, stopped or not."""
    project = os.environ["COMPOSE_PROJECT_NAME"]
    labels = [f"label=com.docker.compose.project={project}", f"label=com.docker.compose.service={service}"]
    found = docker("ps", "-aq", "--filter", labels[0], "--filter", labels[1]).stdout.split()
    if len(found) != 1:
        raise Failed(f"{service}: {len(found)} containers")
    return str(found[0])


def logs(service: str) -> str:
    said = docker("logs", container(service))
    return said.stdout + said.stderr


def docker(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return ran(["docker", *words], check)


def ran(words: list[str], check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip()}")
    return done


if __name__ == "__main__":
    sys.exit(main())
