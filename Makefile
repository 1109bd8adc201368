# What a person types. Every target that needs set-up does it itself; the work is done in tests/bench/*.sh.

export PATH := $(HOME)/.cargo/bin:$(PATH)
.DEFAULT_GOAL := help
.PHONY: help setup setup-app build run demo test fuzz soak bench screenshots icons deb down clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

setup: ## install the Debian packages that the service and its tests need
	@tests/bench/packages.sh

setup-app: ## install what the desktop app needs besides
	@tests/bench/packages.sh tests/bench/packages.txt tests/bench/packages-app.txt

build: setup-app ## build everything
	cargo build --workspace

run: setup-app ## open the app, with an engine and images made here if there are none
	@tests/bench/up.sh --if-offline
	@tests/bench/app.sh

demo: setup ## run a program in a sandbox, with an engine and images made here if there are none
	@tests/bench/up.sh --if-offline
	@tests/bench/demo.sh

test: setup-app ## every check and every test, on a real engine
	@tests/bench/test.sh

fuzz: setup ## a million inputs for each parser of what others send; SANDTRAY_FUZZ=N for another number
	SANDTRAY_FUZZ=$${SANDTRAY_FUZZ:-1000000} cargo test --profile fuzz --locked -p sandtray-core --test fuzz -- --nocapture

soak: setup ## ten minutes of calls while engine, containers, images, service and disk are disturbed; SANDTRAY_SOAK=N minutes
	@tests/bench/up.sh
	cargo build --locked -p sandtray -p sandtray-tests --bins
	target/debug/soak

bench: setup-app ## measure calls, the history and the app, all as they are shipped
	@tests/bench/up.sh
	@tests/bench/release.sh
	cargo build --release --locked -p sandtray-tests --bins
	target/release/bench

screenshots: setup-app ## a picture of every page and state, in ui/shots
	npm --prefix ui ci
	npm --prefix ui run screenshots

icons: ## render every picture from the drawings in icons/
	@icons/render.sh

deb: setup-app ## a Debian package of the app and the command line, in target/release/bundle/deb
	@tests/bench/deb.sh

down: ## stop the engine and the registry that were started here
	@tests/bench/down.sh

clean: ## remove what was built (the bench's own folder stays)
	cargo clean
	rm -rf ui/dist
