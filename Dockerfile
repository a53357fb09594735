# Storekeeper in a container: built on the official Swift image, run on Debian slim as a user of its own.

FROM swift:6.3-bookworm AS build
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends \
        libcurl4-openssl-dev libjemalloc-dev libmicrohttpd-dev libre2-dev libsimdjson-dev libsqlite3-dev libssl-dev libxxhash-dev libzstd-dev pkg-config zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# The dependencies are a layer of their own: they change less often than the sources.
COPY Package.swift ./
RUN swift package resolve
COPY Sources ./Sources
COPY Tests ./Tests
# Debian 13's libmicrohttpd reads requests more strictly than Debian 12's, and takes chunked bodies.
COPY .ci/debian-13 ./.ci/debian-13
RUN install -D -t /staging "$(.ci/debian-13 /tmp/newer libmicrohttpd12t64)"/usr/lib/*/libmicrohttpd.so.12
RUN swift build -c release --static-swift-stdlib --product storekeeper \
    && install -D -s "$(swift build -c release --show-bin-path)/storekeeper" /staging/storekeeper

FROM debian:bookworm-slim
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends \
        ca-certificates libcurl4 libjavascriptcoregtk-4.1-0 libjemalloc2 libmicrohttpd12 libre2-9 libsimdjson14 libsqlite3-0 libssl3 libstdc++6 libzstd1 zlib1g \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin storekeeper \
    && install -d -o storekeeper -g storekeeper /data
COPY --from=build /staging/storekeeper /usr/bin/storekeeper
COPY --from=build /staging/libmicrohttpd.so.12 /usr/local/lib/
RUN ldconfig
COPY config/storekeeper.json /etc/storekeeper/storekeeper.json
# The environment stands above the file and below the flags: any of these can be set anew when the container starts.
ENV STOREKEEPER_LISTEN=0.0.0.0:8080 STOREKEEPER_DATA=/data
USER storekeeper
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s --retries=3 CMD ["storekeeper", "health"]
ENTRYPOINT ["storekeeper"]
CMD ["serve", "--config", "/etc/storekeeper/storekeeper.json"]
