//! `pubgauge hosts render`: manifests for a Kubernetes cluster that runs agents as the pods of an
//! Indexed Job.

use pubgauge_hosts::{Address, Credentials, FILE_VARIABLE};

use crate::args::{HostsVerb, RenderArgs};
use crate::exit::{Ending, FINE, print};

/// The label that all objects of a run have, with their name.
pub const LABEL: &str = "app.kubernetes.io/instance";
/// A pod is called NAME-INDEX, in one label of DNS (RFC 1123: 63 characters).
const LONGEST_NAME: usize = 52;
/// Most failures of agents for each host: a lost agent is started again.
const FAILURES: u32 = 3;

/// `pubgauge hosts`.
pub fn act(verb: &HostsVerb) -> Result<i32, Ending> {
    let HostsVerb::Render(args) = verb;
    print(&rendered(args)?);
    Ok(FINE)
}

fn rendered(args: &RenderArgs) -> Result<String, Ending> {
    let conductor = args.join.parse().map_err(Ending::bad_input)?;
    let credentials = Credentials::read(&args.join_file).map_err(|error| {
        Ending::bad_input(format!(
            "{error}\n  hint: a run with --workers-from join writes them, and waits for its hosts"
        ))
    })?;
    let (image, name) = (args.image.clone(), args.name.clone());
    Manifests::new(&credentials, conductor, image, name)?.text()
}

/// A Secret, a headless Service and an Indexed Job, all of one name.
pub struct Manifests<'a> {
    /// Name of all objects.
    pub name: String,
    credentials: &'a Credentials,
    conductor: Address,
    image: String,
}

impl<'a> Manifests<'a> {
    /// With a pod for each rank that has credentials; without a name, one that other runs do not have.
    ///
    /// # Errors
    /// Bad input: a name that no object can have, no image, ranks that are missing.
    pub fn new(
        credentials: &'a Credentials,
        conductor: Address,
        image: String,
        name: Option<String>,
    ) -> Result<Manifests<'a>, Ending> {
        let own = || format!("pubgauge-{:.8}", credentials.fingerprint.to_string());
        let name = name.unwrap_or_else(own);
        if !is_label(&name) {
            return Err(Ending::bad_input(format!(
                "--name {name:?}: expected small letters, digits and -, with a letter first and no - at the end, {LONGEST_NAME} characters at most"
            )));
        }
        if image.is_empty() || image.contains(char::is_whitespace) {
            return Err(Ending::bad_input(format!(
                "--image {image:?} is no image; expected for example registry.example/pubgauge:1"
            )));
        }
        let ranks = credentials.tokens.keys().copied();
        if !ranks.eq(0..credentials.tokens.len() as u32) {
            return Err(Ending::bad_input(
                "the credentials are not those of all ranks from 0, and a Job has all\n  hint: name the file that the run has written",
            ));
        }
        Ok(Manifests {
            name,
            credentials,
            conductor,
            image,
        })
    }

    /// All objects, in YAML. It contains the tokens of the hosts.
    ///
    /// # Errors
    /// None if there are credentials for all ranks.
    pub fn text(&self) -> Result<String, Ending> {
        Ok([self.secret()?, self.service(), self.job()].join("---\n"))
    }

    fn metadata(&self) -> String {
        let name = &self.name;
        format!("metadata:\n  name: {name}\n  labels:\n    {LABEL}: {name}\n")
    }

    /// The Secret: credentials by rank; a pod sees only its own.
    fn secret(&self) -> Result<String, Ending> {
        let mut text = format!(
            "# The agents of one run. Whoever has the tokens can join it in their place.\napiVersion: v1\nkind: Secret\n{}type: Opaque\nstringData:\n",
            self.metadata()
        );
        for rank in self.credentials.tokens.keys() {
            let own = self.credentials.for_rank(*rank);
            let own = own.map_err(Ending::bad_input)?.text();
            text += &format!("  \"{rank}\": |\n");
            for line in own.lines() {
                text += &format!("    {line}\n");
            }
        }
        Ok(text)
    }

    /// The headless Service, which gives the pods their names: NAME-INDEX.NAME.
    fn service(&self) -> String {
        let (metadata, name) = (self.metadata(), &self.name);
        format!(
            "apiVersion: v1
kind: Service
{metadata}spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {LABEL}: {name}
"
        )
    }

    fn job(&self) -> String {
        let (metadata, name) = (self.metadata(), &self.name);
        let hosts = self.credentials.tokens.len() as u32;
        let failures = hosts * FAILURES;
        // Strings of JSON are strings of YAML.
        let [image, conductor] =
            [self.image.clone(), self.conductor.to_string()].map(serde_json::Value::String);
        format!(
            "apiVersion: batch/v1
kind: Job
{metadata}spec:
  completionMode: Indexed
  completions: {hosts}
  parallelism: {hosts}
  # An agent that fails starts again and joins again.
  backoffLimit: {failures}
  ttlSecondsAfterFinished: 300
  template:
    metadata:
      labels:
        {LABEL}: {name}
    spec:
      subdomain: {name}
      restartPolicy: OnFailure
      terminationGracePeriodSeconds: 5
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        seccompProfile:
          type: RuntimeDefault
      # One agent on each node, as far as there are nodes.
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {LABEL}: {name}
      containers:
        - name: agent
          image: {image}
          args:
            - worker
            - --join
            - {conductor}
          env:
            - name: JOB_COMPLETION_INDEX
              valueFrom:
                fieldRef:
                  fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']
            - name: {FILE_VARIABLE}
              value: /run/pubgauge/join
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop:
                - ALL
          volumeMounts:
            - name: join
              mountPath: /run/pubgauge/join
              subPathExpr: $(JOB_COMPLETION_INDEX)
              readOnly: true
            - name: scratch
              mountPath: /tmp
      volumes:
        - name: join
          secret:
            secretName: {name}
            # 0440: root's, and readable for the group of the pod.
            defaultMode: 288
        - name: scratch
          emptyDir: {{}}
"
        )
    }
}

/// Whether all objects can have this name: that of a Service begins with a letter (RFC 1035).
fn is_label(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels() {
        for name in ["a", "pubgauge-0a1b2c3d", &"x".repeat(LONGEST_NAME)] {
            assert!(is_label(name), "{name}");
        }
        for name in [
            "",
            "1a",
            "-a",
            "a-",
            "A",
            "a.b",
            "a_b",
            "a\n",
            &"x".repeat(LONGEST_NAME + 1),
        ] {
            assert!(!is_label(name), "{name}");
        }
    }

    #[test]
    fn what_no_cluster_can_run_is_refused() {
        let identity = pubgauge_hosts::Identity::generate().unwrap();
        let all = identity.credentials(2).unwrap();
        let of = |credentials: &Credentials, image: &str, name: &str| {
            let conductor = "10.0.0.1".parse().unwrap();
            let name = Some(name.to_owned());
            let made = Manifests::new(credentials, conductor, image.into(), name);
            made.err().map(|ending| ending.message)
        };
        assert_eq!(of(&all, "image", "a"), None);
        assert!(of(&all, "image", "A").unwrap().contains("--name"));
        assert!(of(&all, "", "a").unwrap().contains("--image"));
        let one = all.for_rank(1).unwrap();
        assert!(of(&one, "image", "a").unwrap().contains("all ranks"));
    }
}
