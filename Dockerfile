# posenc in a container: `make image`, or docker build -t posenc . && docker run -p 8080:8080 posenc
# Stages: build makes the server, check runs every test (docker build --target check .), run is the image.

FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY deploy/packages.sh deploy/packages.sh
RUN apt-get update && deploy/packages.sh install build && rm -rf /var/lib/apt/lists/*
COPY . .
ARG COMMIT=unknown
RUN make -j"$(nproc)" COMMIT="$COMMIT" && make install DESTDIR=/out COMMIT="$COMMIT" && strip /out/usr/local/bin/posencd

FROM build AS check
RUN apt-get update && make test

FROM debian:12-slim AS run
RUN apt-get update \
    && apt-get install -y --no-install-recommends libmicrohttpd12 libuv1 libjansson4 libyaml-0-2 libpng16-16 zlib1g libnettle8 libcurl3-gnutls ca-certificates libopenblas0-pthread \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/usr/local/bin/posencd /usr/local/bin/posencd
# Nobody and nogroup, by number: whoever checks that it is not root needs no /etc/passwd.
USER 65534:65534
EXPOSE 8080
# No client in the image: bash speaks TCP itself.
HEALTHCHECK --interval=10s --timeout=2s --start-period=5s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q '200 OK' <&3"]
# Exec form: posencd is process 1 and gets SIGTERM itself. --host 0.0.0.0 because a container's loopback is its own.
ENTRYPOINT ["posencd", "--host", "0.0.0.0"]
