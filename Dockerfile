# Build with the toolchain image, run on a bare Debian: one image holds the server and the client.
FROM swift:6.3.1-bookworm AS build
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends \
        libssl-dev libsqlite3-dev libcurl4-openssl-dev libutf8proc-dev libncurses-dev libqrencode-dev zlib1g-dev >/dev/null \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Package.swift ./
COPY Sources ./Sources
# Compiled into the server, by a link in its sources.
COPY docs/openapi.yaml ./docs/
COPY Tests ./Tests
COPY Tools ./Tools
COPY Snippets ./Snippets
COPY Release ./Release
RUN Release/build /out

# The SockJS client for pages in frames of old browsers (docs/SOCKJS.md): Debian's file alone, its package would bring Node.js.
FROM debian:bookworm-slim AS sockjs
WORKDIR /client
RUN apt-get update -qq \
    && apt-get download -qq node-sockjs-client \
    && dpkg -x node-sockjs-client_*.deb . \
    && rm -rf /var/lib/apt/lists/*

FROM debian:bookworm-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends libssl3 libsqlite3-0 libcurl4 libutf8proc2 libncursesw6 libqrencode4 zlib1g ca-certificates >/dev/null \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 8000 --create-home --home-dir /home/thicket thicket \
    && install -d -o thicket -g thicket /data
COPY --from=build /out/thicketd /out/thicket /usr/local/bin/
COPY --from=sockjs /client/usr/share/nodejs/sockjs-client/dist/sockjs.min.js /usr/share/nodejs/sockjs-client/dist/
COPY --from=sockjs /client/usr/share/doc/node-sockjs-client/copyright /usr/share/doc/node-sockjs-client/
USER thicket
VOLUME /data
EXPOSE 8000
ENV THICKET_DATA=/data THICKET_LISTEN=0.0.0.0:8000 SWIFT_BACKTRACE=enable=no
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s CMD ["thicketd", "health"]
CMD ["thicketd", "serve"]
