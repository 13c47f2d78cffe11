// Manifests on stdin, a list in JSON; on stdout one line for each: null, or what is wrong by the schema of its kind.
const PACKAGES = {
  "keda.sh": "@kubernetes-models/keda/",
  "monitoring.coreos.com": "@kubernetes-models/prometheus-operator/",
};

const parts = [];
for await (const part of process.stdin) parts.push(part);
for (const manifest of JSON.parse(Buffer.concat(parts))) {
  const { apiVersion, kind } = manifest;
  const from = PACKAGES[apiVersion.split("/")[0]] ?? "kubernetes-models/";
  try {
    const { [kind]: Model } = await import(`${from}${apiVersion}/${kind}`);
    new Model(manifest).validate();
    console.log("null");
  } catch (error) {
    console.log(JSON.stringify(`${kind}: ${error.message}`));
  }
}
