#!/usr/bin/env bash
# Builds kube-apiserver and kube-controller-manager 1.20.2 from Debian 12's own
# source package, whose dependencies are vendored inside, so that nothing but
# Debian's mirror is asked. Called by `cargo xtask`, see provide.rs beside this.
#
# usage: build.sh FOLDER      FOLDER exists, is empty and receives both programs
#
# Needs: go 1.19, apt-get, dpkg, tar; no root. Takes 3 to 7 minutes on two cores
# and 1.2 GB beside FOLDER while it runs. Reproducible to the byte.
set -euo pipefail
out=$(realpath "$1")
scratch=$(mktemp -d "$out.scratch.XXXXXX")
# The module cache is written read-only in places.
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
say() { echo "[+${SECONDS}s] $*"; }

say "fetch the source package (with an apt state of our own: the machine's stays as it is)"
mkdir -p "$scratch/gopath/src/k8s.io" "$scratch/apt/lists/partial" "$scratch/apt/cache/archives/partial"
if [ -e /etc/apt/sources.list.d/debian.sources ]; then
  sources=debian.sources
  sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$scratch/apt/$sources"
else
  sources=debian.list
  sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$scratch/apt/$sources"
fi
cat >"$scratch/apt/apt.conf" <<CONFIGURATION
Dir::Etc::sourcelist "$scratch/apt/$sources";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$scratch/apt/lists";
Dir::Cache "$scratch/apt/cache";
CONFIGURATION
cd "$scratch"
apt-get -qq -c apt/apt.conf update
apt-get -qq -c apt/apt.conf source --download-only kubernetes
apt-get -qq download golang-github-modern-go-reflect2-dev
dpkg -x golang-github-modern-go-reflect2-dev_*.deb reflect2

say "unpack"
export GOPATH=$scratch/gopath GOCACHE=$scratch/gocache HOME=$scratch
export GO111MODULE=off GOFLAGS='' CGO_ENABLED=0
tar xzf "$scratch"/kubernetes_*.orig.tar.gz -C "$GOPATH/src/k8s.io"
mv "$GOPATH/src/k8s.io/kubernetes-1.20.2" "$GOPATH/src/k8s.io/kubernetes"
cd "$GOPATH/src/k8s.io/kubernetes"

# The vendored reflect2 1.0.1 crashes the server at the first server-side apply
# if built with Go 1.18 or newer. Debian's own package of 1.0.2 does not.
rm -rf vendor/github.com/modern-go/reflect2
cp -r "$scratch/reflect2/usr/share/gocode/src/github.com/modern-go/reflect2" vendor/github.com/modern-go/
find vendor/github.com/modern-go/reflect2 -name '*_test.go' -delete

say "generate pkg/generated/openapi, which is not in the source package"
go build -o "$scratch/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
packages=$(grep -rl --include='*.go' '^// *+k8s:openapi-gen=' vendor/k8s.io/*/ pkg cmd plugin |
  grep -vE '^vendor/k8s.io/(code-generator|sample-apiserver)/|_test\.go$|/testdata/|/zz_generated' |
  xargs -n1 dirname | LC_ALL=C sort -u | sed 's#^#k8s.io/kubernetes/#' | paste -sd,)
"$scratch/openapi-gen" --logtostderr -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi \
  -O zz_generated.openapi -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt \
  -r "$scratch/violations.report"

# What `kubectl version` shows. The date is a constant, else no two builds were
# the same.
flags="-s -w"
for package in k8s.io/kubernetes/vendor/k8s.io/component-base/version k8s.io/kubernetes/vendor/k8s.io/client-go/pkg/version; do
  flags="$flags -X $package.gitVersion=v1.20.2 -X $package.gitMajor=1 -X $package.gitMinor=20"
  flags="$flags -X $package.gitTreeState=archive -X $package.buildDate=2021-01-13T13:20:00Z"
done
for program in kube-apiserver kube-controller-manager; do
  say "build $program"
  go build -trimpath -tags providerless -ldflags "$flags" -o "$out/$program" "./cmd/$program"
done
say "done"
