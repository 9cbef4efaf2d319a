# Prometheus as its official image is laid out (user, folders, wget of busybox), of Debian's packages: for check.sh, where
# no registry is in reach. root/ holds the unpacked packages.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
COPY root/usr/ /usr/
COPY root/bin/ /usr/bin/
RUN ln -s busybox /usr/bin/wget && install -d -o 65534 -g 65534 /prometheus
USER 65534:65534
WORKDIR /prometheus
ENTRYPOINT ["/usr/bin/prometheus"]
