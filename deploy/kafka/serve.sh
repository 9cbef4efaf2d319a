#!/bin/sh
# Serves one broker at 127.0.0.1:$PORT as its clients see it, who are given that same port by Docker.
set -eu
cat >/tmp/server.properties <<END
process.roles=broker,controller
node.id=0
controller.quorum.voters=0@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=CLIENT://0.0.0.0:$PORT,CONTROLLER://127.0.0.1:9093
advertised.listeners=CLIENT://127.0.0.1:$PORT
listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CLIENT
log.dirs=/var/lib/kafka/data
num.partitions=4
auto.create.topics.enable=false
message.max.bytes=20000000
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
log.cleaner.dedupe.buffer.size=4194304
END
kafka() {
  exec java -Xms96m -Xmx320m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Dlog4j2.configurationFile=/opt/kafka/log4j2.properties -cp '/opt/kafka/libs/*' "$@"
}
(kafka kafka.tools.StorageTool format -t "$(head -c 16 /dev/urandom | base64 | tr '+/' 'AA' | tr -d =)" -c /tmp/server.properties) >/dev/null
kafka kafka.Kafka /tmp/server.properties
