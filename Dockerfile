# One image for every program: `docker run evenhand scheduler`, `docker run evenhand api` and so on.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY schemas schemas
COPY streams streams
COPY projections projections
COPY api api
COPY evenhand evenhand
RUN python -m venv /opt/evenhand && /opt/evenhand/bin/pip install --no-cache-dir ".[server]"

FROM python:3.12-slim
# The folders exist in the image so that volumes mounted there belong to the user below. The keys
# file is empty: the API starts and lets nobody in.
RUN useradd --system --uid 10001 --no-create-home evenhand \
    && install -d -o evenhand -g evenhand /var/lib/evenhand /etc/evenhand \
    && install -o evenhand -g evenhand -m 600 /dev/null /etc/evenhand/keys.jsonl
COPY --from=build /opt/evenhand /opt/evenhand
ENV PATH=/opt/evenhand/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    EVENHAND_DATA_DIR=/var/lib/evenhand \
    EVENHAND_KEYS_FILE=/etc/evenhand/keys.jsonl
USER 10001
ENTRYPOINT ["evenhand"]
