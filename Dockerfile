# shadowprice with the exact versions that its tests ran with.
FROM python:3.11-slim
WORKDIR /shadowprice
COPY requirements/demo.txt requirements/demo.txt
RUN pip install --no-cache-dir --no-deps --only-binary :all: --requirement requirements/demo.txt
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation .
USER nobody
ENV NUMBA_CACHE_DIR=/tmp/numba MPLCONFIGDIR=/tmp/matplotlib
ENTRYPOINT ["shadowprice"]
CMD ["demo"]
