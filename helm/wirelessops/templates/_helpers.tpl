{{/* Name of the xApp. */}}
{{- define "wirelessops.xapp" -}}
{{- if .Values.xappName -}}
{{- .Values.xappName -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name -}}
{{- end -}}
{{- end -}}

{{/*
What the names of all objects are made of, as xapp_onboarder does it. It cuts names at 63 characters, by which two
releases may come to one name; this fails.
*/}}
{{- define "wirelessops.fullname" -}}
{{- $name := printf "%s-%s" .Release.Namespace (include "wirelessops.xapp" .) -}}
{{- if gt (len $name) 50 -}}
{{- fail (printf "xappName: %q has %d characters; at most 50 leave room for service-…-http: give a shorter xappName" $name (len $name)) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "wirelessops.serviceName" -}}
service-{{ include "wirelessops.fullname" . }}-http
{{- end -}}

{{- define "wirelessops.configMapName" -}}
configmap-{{ include "wirelessops.fullname" . }}
{{- end -}}

{{- define "wirelessops.serviceAccountName" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "wirelessops.fullname" . -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "wirelessops.selector" -}}
app: {{ include "wirelessops.fullname" . }}
release: {{ .Release.Name }}
{{- end -}}

{{- define "wirelessops.commonLabels" -}}
release: {{ .Release.Name }}
chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
heritage: {{ .Release.Service }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "wirelessops.labels" -}}
app: {{ include "wirelessops.fullname" . }}
{{ include "wirelessops.commonLabels" . }}
{{- end -}}

{{/*
Labels of an object that another tool selects by labels of its choice: those win. A list: the context, the labels.
kube-prometheus-stack selects by `release`, which is a label of the chart as well.
*/}}
{{- define "wirelessops.labelsUnder" -}}
{{- merge (dict) (last .) (include "wirelessops.labels" (first .) | fromYaml) | toYaml -}}
{{- end -}}

{{- define "wirelessops.testLabels" -}}
app: {{ include "wirelessops.fullname" . }}-test
release: {{ .Release.Name }}
{{- end -}}

{{- define "wirelessops.image" -}}
{{- $name := .Values.image.name -}}
{{- if .Values.image.registry -}}
{{- $name = printf "%s/%s" .Values.image.registry $name -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $name .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "wirelessops.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ .Values.user }}
runAsGroup: {{ .Values.user }}
fsGroup: {{ .Values.user }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "wirelessops.securityContext" -}}
runAsNonRoot: true
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* "yes" where connections to Kafka need the file of --kafka-config. */}}
{{- define "wirelessops.kafkaSecured" -}}
{{- if ne .Values.kafka.security "PLAINTEXT" -}}yes{{- end -}}
{{- end -}}

{{/* "yes" where a folder of contracts is mounted. */}}
{{- define "wirelessops.contracts" -}}
{{- if or .Values.contracts.files .Values.contracts.existingConfigMaps -}}yes{{- end -}}
{{- end -}}

{{/* "yes" where a folder of support terms and reference maps is mounted. */}}
{{- define "wirelessops.support" -}}
{{- if or .Values.support.terms .Values.support.existingConfigMaps -}}yes{{- end -}}
{{- end -}}

{{/* How a command in a guard's container reaches the same Kafka. */}}
{{- define "wirelessops.kafkaOptions" -}}
--bootstrap-servers {{ .Values.kafka.bootstrapServers }} --prefix {{ .Values.kafka.topicPrefix | squote }}
{{- if include "wirelessops.kafkaSecured" . }} --kafka-config /etc/wirelessops/kafka/kafka.properties{{ end -}}
{{- end -}}

{{/* Ports that brokers are reached at, as a JSON list without repeats. */}}
{{- define "wirelessops.kafkaPorts" -}}
{{- $ports := list -}}
{{- range splitList "," .Values.kafka.bootstrapServers -}}
{{- $ports = append $ports (splitList ":" . | last | int) -}}
{{- end -}}
{{- range .Values.networkPolicy.egress.kafkaExtraPorts -}}
{{- $ports = append $ports (int .) -}}
{{- end -}}
{{- $ports | uniq | toJson -}}
{{- end -}}

{{/* The port of a URL: its own, or that of its scheme. */}}
{{- define "wirelessops.urlPort" -}}
{{- $url := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- $port | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end -}}

{{/*
The controls of the descriptor: settings of the guard by name. What this release is wired to, and the values' controls,
which the schema keeps apart from it.
*/}}
{{- define "wirelessops.controls" -}}
{{- $wired := dict
  "bootstrap_servers" .Values.kafka.bootstrapServers
  "prefix" .Values.kafka.topicPrefix
  "partitions" .Values.kafka.partitions
  "replication" .Values.kafka.replication
  "web_host" .Values.web.host
  "web_port" .Values.web.port -}}
{{- if include "wirelessops.kafkaSecured" . -}}
{{- $_ := set $wired "kafka_config" "/etc/wirelessops/kafka/kafka.properties" -}}
{{- end -}}
{{- if include "wirelessops.contracts" . -}}
{{- $_ := set $wired "contracts_dir" "/etc/wirelessops/contracts" -}}
{{- end -}}
{{- if include "wirelessops.support" . -}}
{{- $_ := set $wired "support_dir" "/etc/wirelessops/support" -}}
{{- end -}}
{{- if .Values.signing.existingSecret -}}
{{- $_ := set $wired "signing_key" "/etc/wirelessops/signing/guard.pem" -}}
{{- end -}}
{{- if .Values.signing.trustedKeysConfigMap -}}
{{- $_ := set $wired "trusted_keys" (list "/etc/wirelessops/trusted-keys") -}}
{{- end -}}
{{- if .Values.signing.unsigned -}}
{{- $_ := set $wired "unsigned" true -}}
{{- end -}}
{{- if .Values.operators.existingSecret -}}
{{- $_ := set $wired "operator_tokens" "/etc/wirelessops/operators/tokens" -}}
{{- end -}}
{{- if .Values.alarms.url -}}
{{- $_ := set $wired "alarm_url" .Values.alarms.url -}}
{{- end -}}
{{- merge $wired .Values.controls | toJson -}}
{{- end -}}

{{/* The descriptor, config-file.json: that of the project, with what this release says. */}}
{{- define "wirelessops.descriptor" -}}
{{- $descriptor := .Files.Get "files/config-file.json" | fromJson -}}
{{- $_ := set $descriptor "xapp_name" (include "wirelessops.xapp" .) -}}
{{- $_ := set $descriptor "version" .Chart.AppVersion -}}
{{- $image := dict "registry" (.Values.image.registry | default "docker.io") "name" .Values.image.name "tag" (.Values.image.tag | default .Chart.AppVersion) -}}
{{- $_ := set (first $descriptor.containers) "image" $image -}}
{{- range $probe := list "livenessProbe" "readinessProbe" -}}
{{- $_ := set (get $descriptor $probe).httpGet "port" $.Values.web.port -}}
{{- end -}}
{{- $container := (first $descriptor.containers).name -}}
{{- $ports := list -}}
{{- range $port := $descriptor.messaging.ports -}}
{{- if eq $port.name "http" -}}
{{- $_ := set $port "port" $.Values.web.port -}}
{{- end -}}
{{- $ports = append $ports $port -}}
{{- end -}}
{{- if .Values.rmr.enabled -}}
{{- $ports = append $ports (dict "name" "rmrdata" "container" $container "port" .Values.rmr.dataPort) -}}
{{- $ports = append $ports (dict "name" "rmrroute" "container" $container "port" .Values.rmr.routePort) -}}
{{- end -}}
{{- $_ := set $descriptor.messaging "ports" $ports -}}
{{- $_ := set $descriptor "controls" (include "wirelessops.controls" . | fromJson) -}}
{{- $descriptor | toPrettyJson -}}
{{- end -}}
