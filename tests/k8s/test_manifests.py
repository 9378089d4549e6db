"""The manifests fit the code: ports, settings, probes, the time to stop, and who may do what."""

from pathlib import Path
from typing import Any

import pytest

from corvo.cli.programs import STOP_MARGIN_S
from corvo.settings import ENV_PREFIX, Settings, load, names, split_address
from docs.generate import PAGE_ROUTES
from gateway.health import ASK_S
from tests.k8s.yaml_reader import documents

BASE = Path(__file__).parents[2] / "k8s" / "base"
FILES = sorted(BASE.glob("*.yaml"))
APP = {"app.kubernetes.io/name": "corvo"}


def one(kind: str, name: str = "corvo") -> Any:
    found = [
        document
        for path in FILES
        for document in documents(path.read_text())
        if document["kind"] == kind and document["metadata"]["name"] == name
    ]
    assert len(found) == 1
    return found[0]


def pod() -> Any:
    return one("StatefulSet")["spec"]["template"]["spec"]


def container() -> Any:
    (only,) = pod()["containers"]
    return only


def variables() -> dict[str, str]:
    lines = (BASE / "settings.env").read_text().split()
    return dict(line.split("=", 1) for line in lines)


def settings() -> Settings:
    return load({}, variables())[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_manifest_can_be_read(path: Path) -> None:
    for document in documents(path.read_text()):
        assert {"apiVersion", "kind"} <= document.keys()


def test_kustomize_knows_every_file() -> None:
    (kustomization,) = documents((BASE / "kustomization.yaml").read_text())

    (generated,) = kustomization["configMapGenerator"]
    assert set(kustomization["resources"]) == {path.name for path in FILES} - {"kustomization.yaml"}
    assert generated["envs"] == ["settings.env"]
    assert container()["envFrom"] == [{"configMapRef": {"name": generated["name"]}}]


def test_every_variable_is_a_setting_that_the_server_accepts() -> None:
    given = [*variables(), *(variable["name"] for variable in container()["env"])]

    assert {name.removeprefix(ENV_PREFIX).lower() for name in given} <= set(names())
    assert len(given) == len(set(given))
    assert settings().fsync == "on"


def test_the_ports_are_those_of_the_settings() -> None:
    http = split_address(settings().bind)[1]
    raft = split_address(settings().raft_bind)[1]
    expected = {"http": http, **{f"raft-{shard}": raft + shard for shard in range(settings().shards)}}

    assert {port["name"]: port["containerPort"] for port in container()["ports"]} == expected
    nodes = one("Service", "corvo-nodes")["spec"]["ports"]
    assert {port["name"]: port["port"] for port in nodes} == expected
    assert all(port["targetPort"] == port["name"] for port in nodes)
    assert [(port["port"], port["targetPort"]) for port in one("Service")["spec"]["ports"]] == [(http, "http")]


def test_the_probes_ask_pages_that_are_served() -> None:
    probes = {name: container()[name] for name in ("startupProbe", "livenessProbe", "readinessProbe")}

    assert {name: probe["httpGet"] for name, probe in probes.items()} == {
        "startupProbe": {"path": "/livez", "port": "http"},
        "livenessProbe": {"path": "/livez", "port": "http"},
        "readinessProbe": {"path": "/readyz", "port": "http"},
    }
    assert {probe["httpGet"]["path"] for probe in probes.values()} <= PAGE_ROUTES.keys()
    assert probes["readinessProbe"]["timeoutSeconds"] > ASK_S
    assert probes["livenessProbe"]["periodSeconds"] * probes["livenessProbe"]["failureThreshold"] >= 60


def test_the_pod_has_time_to_stop_in_order() -> None:
    (command, seconds) = container()["lifecycle"]["preStop"]["exec"]["command"]
    drains = 3 * (settings().shutdown_timeout + STOP_MARGIN_S)  # gateway, shards, mirror: one after the other

    assert command == "sleep"
    assert pod()["terminationGracePeriodSeconds"] > int(seconds) + drains


def test_the_pod_may_do_nothing_that_it_need_not() -> None:
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["enableServiceLinks"] is False
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["securityContext"]["runAsUser"] > 10_000
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container()["resources"]["limits"]


def test_what_is_written_has_a_volume() -> None:
    mounts = {mount["mountPath"]: mount["name"] for mount in container()["volumeMounts"]}
    (claim,) = one("StatefulSet")["spec"]["volumeClaimTemplates"]
    (scratch,) = pod()["volumes"]

    assert mounts == {"/data": claim["metadata"]["name"], "/tmp": scratch["name"]}
    assert container()["args"] == ["server", "--data-dir", "/data"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_there_is_one_node_because_nodes_do_not_join_yet() -> None:
    assert one("StatefulSet")["spec"]["replicas"] == 1


def test_every_selector_finds_the_pod() -> None:
    spec = one("StatefulSet")["spec"]

    assert spec["template"]["metadata"]["labels"] == spec["selector"]["matchLabels"] == APP
    assert spec["serviceName"] == "corvo-nodes"
    assert one("Service")["spec"]["selector"] == one("Service", "corvo-nodes")["spec"]["selector"] == APP
    assert one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == APP
    assert one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == APP


def test_nodes_find_each_other_before_they_are_ready() -> None:
    nodes = one("Service", "corvo-nodes")["spec"]

    assert nodes["clusterIP"] == "None"
    assert nodes["publishNotReadyAddresses"] is True


def test_raft_is_for_the_pods_themselves_and_http_for_labelled_clients() -> None:
    clients, peers = one("NetworkPolicy")["spec"]["ingress"]
    raft = split_address(settings().raft_bind)[1]

    assert clients["from"] == [{"podSelector": {"matchLabels": {"corvo-client": "true"}}}]
    assert [port["port"] for port in clients["ports"]] == ["http"]
    assert peers["from"] == [{"podSelector": {"matchLabels": APP}}]
    assert [(port["port"], port["endPort"]) for port in peers["ports"]] == [(raft, raft + settings().shards - 1)]
    assert one("NetworkPolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]
