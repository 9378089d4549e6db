# One image for every process of a node; `corvo server` starts them all.
# For a release, pin the base by digest: python:3.12-slim@sha256:… (and renew it every week).
ARG PYTHON=python:3.12-slim

FROM ${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv /opt/corvo
WORKDIR /src
# Packages first: they change more seldom than the code. Wheels only: the image has no compiler, and needs none.
COPY requirements-image.lock ./
RUN /opt/corvo/bin/pip install --require-hashes --only-binary=:all: -r requirements-image.lock
COPY pyproject.toml README.md LICENSE ./
COPY corvo ./corvo
COPY shards ./shards
COPY gateway ./gateway
RUN /opt/corvo/bin/pip install --no-index --no-deps --no-build-isolation . \
    # It built the line above; a server needs it no more.
    && /opt/corvo/bin/pip uninstall --yes setuptools \
    && /opt/corvo/bin/python -m compileall -q /opt/corvo/lib

FROM ${PYTHON}
RUN groupadd --gid 10001 corvo \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin corvo \
    && install --directory --owner=corvo --group=corvo --mode=0700 /data /secret
COPY --from=build /opt/corvo /opt/corvo
# The root file system may be read-only: bytecode is compiled above, and all that is written is below /data.
# /secret is for a volume that the nodes of a cluster share (docs/how-to/run-a-cluster.md). Other machines reach the
# server: it needs CORVO_ADMIN_PASSWORD_FILE (docs/how-to/secure-a-server.md).
ENV PATH=/opt/corvo/bin:$PATH PYTHONDONTWRITEBYTECODE=1 CORVO_DATA_DIR=/data CORVO_BIND=:8080
USER 10001:10001
WORKDIR /data
VOLUME /data
# HTTP, and a port for each of four shards between the nodes of a cluster.
EXPOSE 8080 9400-9403
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 \
    CMD ["python", "-c", "import os, ssl, urllib.request as web; scheme = 'https' if os.environ.get('CORVO_TLS_CERT') else 'http'; \
web.urlopen(scheme + '://127.0.0.1:8080/healthz', timeout=4, context=ssl._create_unverified_context())"]
ENTRYPOINT ["corvo"]
CMD ["server", "--data-dir", "/data"]
