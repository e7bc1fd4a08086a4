# Caudal. `make` alone explains itself.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CLASSES := $(VENV)/.spark-prepared
# More workers than the two processors of a small machine: most tests wait for a service rather than compute.
WORKERS ?= 3
# In the order of the folders: what takes minutes begins first, and small tests fill the gaps at the end.
SPREAD := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
JAVA_CLIENTS := 2.8.2 3.9.1 4.3.0
KAFKA_CONNECT := 4.1.0
KAFKA_TOOLS := 4.3.0
KAFKA := 4.3.0
MIXED_RELEASES := 4.0.0 4.1.1 4.2.0 4.3.1
# The conformance tests that any broker has to pass: not those that start brokers of their own, or need none.
ON_BROKERS := $(filter-out $(addprefix tests/conformance/test_,connect_%.py every_version.py java_%.py kafka_%.py \
	proxy_openapi.py registry_agreement.py registry_clients.py registry_serializers.py three_brokers.py), \
	$(wildcard tests/conformance/test_*.py))
# Ways to log in, which are tried at Apache Kafka, too.
LOGINS := tests/conformance/test_java_security.py tests/conformance/test_kafka_security_tools.py \
	tests/integration/test_sasl.py tests/integration/test_tls.py tests/integration/test_token_login.py
HELM := v3.22.0
# Fetch Kafka's own Java clients and tools.
define fetch_java
	@for version in $(JAVA_CLIENTS); do \
		mvn -q -B -f tests/support/java/pom.xml -Dkafka.version=$$version dependency:copy-dependencies \
			-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(VENV)/java/$$version || exit 1; \
	done
	mvn -q -B -f tests/support/java/tools.xml -Dkafka.version=$(KAFKA_TOOLS) dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(VENV)/java/tools
endef
JAVA := CAUDAL_JAVA_CLIENTS=$(CURDIR)/$(VENV)/java CAUDAL_KAFKA_TOOLS=$(CURDIR)/$(VENV)/java/tools

.DEFAULT_GOAL := help
.PHONY: help setup check simulate test test-unit test-all test-cluster test-secure test-kafka test-mixed test-java test-helm test-docker test-spark-jars chaos fuzz-logins run bench wheel docs format lock clean

help: ## Show this help
	@printf '\nCaudal: an event platform that Kafka'"'"'s ecosystem cannot tell from the real thing.\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[36mmake %-15s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nFirst time here?   make run     (sets everything up, starts the platform, shows it at work)\n\n'

setup: $(STAMP) ## Make everything that is needed to run and test (quick the second time)

$(STAMP): pyproject.toml requirements.lock
	@sh deploy/setup/machine.sh "$(PYTHON)" "$(VENV)"
	@touch $@

# Tests start Spark many times: with its classes at hand it takes a third less each time.
$(CLASSES): $(STAMP)
	@$(BIN)/caudal spark prepare || echo "  Spark's tests take longer, or are skipped, without that"
	@touch $@

check: setup ## Lint, types, import contracts, promises about the source, generated docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry .
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/project
	$(BIN)/python -m deploy.settings_docs --check

# Compiled tests are kept for the next run, whatever the environment says: each worker would compile all of them again.
test test-unit test-all: export PYTHONDONTWRITEBYTECODE :=
# The output of processes is buffered, as it is by default: what waits for a line that was not flushed must fail here, too.
test test-unit test-all: export PYTHONUNBUFFERED :=

test: $(CLASSES) ## Run all tests (none of the benchmarks)
	$(BIN)/python -m pytest $(SPREAD)

# They compute rather than wait: a worker for each processor.
test-unit: setup ## Run the unit tests that start no processes (under three minutes)
	$(BIN)/python -m pytest tests/unit -n auto --dist loadfile -m "not processes and not slow and not bench"

test-all: $(CLASSES) ## Run all tests, the slow ones too
	$(BIN)/python -m pytest $(SPREAD) -m "not bench"

test-cluster: setup ## Run the conformance tests against three brokers
	CAUDAL_NODES=3 $(BIN)/python -m pytest $(ON_BROKERS)

test-secure: setup ## Run the conformance tests against three brokers with TLS and logins among all parties
	CAUDAL_NODES=3 CAUDAL_SECURE=1 $(BIN)/python -m pytest $(ON_BROKERS)

test-kafka: setup ## Run the conformance tests against three brokers of Apache Kafka (fetches it with Maven)
	mvn -q -B -f tests/support/java/kafka.xml -Dkafka.version=$(KAFKA) dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(VENV)/java/kafka
	$(fetch_java)
	KAFKA_JARS=$(CURDIR)/$(VENV)/java/kafka KAFKA_NODES=3 $(BIN)/python -m pytest $(ON_BROKERS)
	KAFKA_JARS=$(CURDIR)/$(VENV)/java/kafka $(JAVA) $(BIN)/python -m pytest $(LOGINS)

test-mixed: setup ## Run the tests of clusters that mix Caudal and releases of Apache Kafka (fetches them with Maven)
	for version in $(MIXED_RELEASES); do \
		mvn -q -B -f tests/support/java/kafka.xml -Dkafka.version=$$version dependency:copy-dependencies \
			-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(VENV)/java/releases/$$version || exit 1; \
	done
	KAFKA_JARS=$(CURDIR)/$(VENV)/java/releases/$(lastword $(MIXED_RELEASES)) \
		CAUDAL_KAFKA_RELEASES=$(CURDIR)/$(VENV)/java/releases $(BIN)/python -m pytest tests/mixed

SEEDS ?= 1000
FIRST ?= 0

simulate: setup ## Run a cluster in virtual time under faults, once for each of SEEDS=1000 seeds (FIRST=0)
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST)

test-java: setup ## Run the tests with Kafka's own Java clients (fetches them with Maven)
	$(fetch_java)
	mvn -q -B -f tests/support/java/connect.xml -Dkafka.version=$(KAFKA_CONNECT) dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(VENV)/java/connect
	mvn -q -B -f tests/support/java/streams/pom.xml -Dkafka.version=$(KAFKA) dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(VENV)/java/streams
	mvn -q -B -f tests/support/java/vertx.xml dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(VENV)/java/vertx
	$(JAVA) CAUDAL_KAFKA_CONNECT=$(CURDIR)/$(VENV)/java/connect $(BIN)/python -m pytest \
		tests/conformance/test_java_*.py tests/conformance/test_connect_real.py tests/conformance/test_kafka_*tools.py
	CAUDAL_KAFKA_STREAMS=$(CURDIR)/$(VENV)/java/streams CAUDAL_VERTX=$(CURDIR)/$(VENV)/java/vertx \
		$(BIN)/python -m pytest -m "not bench" \
		tests/conformance/test_kafka_streams_semantics.py tests/conformance/test_ksqldb_clients.py

test-helm: setup ## Run the tests of the chart with Helm itself (builds it with Go)
	GOBIN=$(CURDIR)/$(VENV)/helm go install helm.sh/helm/v3/cmd/helm@$(HELM)
	CAUDAL_HELM=$(CURDIR)/$(VENV)/helm/helm $(BIN)/python -m pytest tests/unit/deploy/helm/test_helm.py

test-docker: setup ## Build the images and run the platform in containers, on one machine and scaled out (needs Docker)
	docker build -f deploy/docker/Dockerfile -t caudal:latest --target caudal .
	docker build -f deploy/docker/Dockerfile -t caudal:spark --target caudal-spark .
	CAUDAL_DOCKER=docker $(BIN)/python -m pytest tests/e2e/test_containers.py tests/e2e/test_containers_scaled_out.py

test-spark-jars: setup ## Run the tests beside Spark's own Kafka connector (fetches it with Maven)
	mvn -q -B -f tests/support/java/spark.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(VENV)/java/spark
	CAUDAL_SPARK_JARS=$(CURDIR)/$(VENV)/java/spark \
		$(BIN)/python -m pytest tests/integration/test_spark_kafka_connector.py

MINUTES ?= 5
FAULTS ?= 1000000
KINDS ?=
SEED ?= $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')

# Mixed clusters run the newest of these releases, or the Kafka in the folder that KAFKA_JARS names.
KAFKA_FOLDER = $(or $(KAFKA_JARS),$(CURDIR)/$(VENV)/java/releases/$(lastword $(MIXED_RELEASES)))
FETCH_KAFKA = $(if $(KAFKA_JARS),,mvn -q -B -f tests/support/java/kafka.xml -Dkafka.version=$(lastword $(MIXED_RELEASES)) \
	dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(KAFKA_FOLDER))

chaos: setup ## Kill, pause, cut off and fill up brokers under load, and check what clients saw (MINUTES=, FAULTS=, KINDS=, SEED=, MIXED=caudal or kafka)
	$(if $(MIXED),$(FETCH_KAFKA))
	$(if $(MIXED),KAFKA_JARS=$(KAFKA_FOLDER)) $(BIN)/python -m tests.chaos --minutes $(MINUTES) --faults $(FAULTS) \
		--kinds "$(KINDS)" --seed $(SEED) $(if $(MIXED),--mixed $(MIXED))

FRAMES ?= 1000000

fuzz-logins: setup ## Send damaged logins of every mechanism to the broker's state machine (FRAMES=1000000, SEED=)
	CAUDAL_LOGIN_FRAMES=$(FRAMES) CAUDAL_LOGIN_SEED=$(SEED) $(BIN)/python -m pytest \
		tests/unit/core_broker/server/test_authentication.py -k damaged_logins

run: setup ## Start the whole platform and show it at work, step by step (ONCE=1 ends it afterwards, BROKERS=3 on a cluster)
	@$(BIN)/caudal quickstart $(if $(BROKERS),--brokers $(BROKERS))

bench: setup ## Measure throughput, latency, start time and memory beside this machine's limits
	$(BIN)/python -m tests.benchmarks

wheel: setup ## Build dist/caudal-*.whl, to be installed without a checkout
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/caudal-*.whl

docs: setup ## Rewrite the generated documentation
	$(BIN)/python -m deploy.settings_docs
	$(BIN)/python -m core_broker.handlers.access_page

format: setup ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup ## Resolve the newest versions of all dependencies into requirements.lock
	$(BIN)/uv pip compile --quiet --universal --upgrade --all-extras --group dev --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

clean: ## Remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
