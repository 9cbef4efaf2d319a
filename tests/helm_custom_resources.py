"""The form of the custom resources that the chart makes, of the members that it uses: JSON Schemas of their `spec`."""

from __future__ import annotations

from typing import Any

STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


CUSTOM = {
    # KEDA 2 (keda.sh/docs, "ScaledObject specification"), of the members that the chart uses
    "ScaledObject": _object(
        ["scaleTargetRef", "triggers"],
        scaleTargetRef=_object(
            ["name"], apiVersion={"type": "string"}, kind={"type": "string"}, name={"type": "string"}
        ),
        minReplicaCount={"type": "integer", "minimum": 1},
        maxReplicaCount={"type": "integer", "minimum": 1},
        pollingInterval={"type": "integer", "minimum": 1},
        advanced=_object(
            [],
            horizontalPodAutoscalerConfig=_object(
                [], behavior=_object([], scaleDown=_object([], stabilizationWindowSeconds={"type": "integer"}))
            ),
        ),
        triggers={
            "type": "array",
            "minItems": 1,
            "items": _object(
                ["type", "metadata"],
                type={"const": "kafka"},
                # Every value of a trigger's metadata is text
                metadata=STRINGS | {"required": ["bootstrapServers", "consumerGroup", "topic", "lagThreshold"]},
                authenticationRef=_object(
                    ["name"],
                    name={"type": "string", "minLength": 1},
                    kind={"enum": ["TriggerAuthentication", "ClusterTriggerAuthentication"]},
                ),
            ),
        },
    ),
    # Prometheus operator, monitoring.coreos.com/v1
    "ServiceMonitor": _object(
        ["selector", "endpoints"],
        selector=_object(["matchLabels"], matchLabels=STRINGS),
        namespaceSelector=_object([], matchNames={"type": "array", "items": {"type": "string"}}),
        endpoints={
            "type": "array",
            "minItems": 1,
            "items": _object(
                ["port", "path"],
                port={"type": "string"},
                path={"type": "string"},
                interval={"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
                scrapeTimeout={"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
            ),
        },
    ),
    "PrometheusRule": _object(
        ["groups"],
        groups={
            "type": "array",
            "minItems": 1,
            "items": _object(
                ["name", "rules"],
                name={"type": "string", "minLength": 1},
                interval={"type": "string"},
                rules={
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["expr"],
                        "anyOf": [{"required": ["alert"]}, {"required": ["record"]}],
                        "properties": {"expr": {"type": "string"}, "labels": STRINGS, "annotations": STRINGS},
                    },
                },
            ),
        },
    ),
}
