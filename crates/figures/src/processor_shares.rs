//! Which shares of the processors that there were client and system used.

use crate::model::{HeldLimits, Trial};

/// Processor time as shares of what there was, on average over the measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Of the client, of all processors of the machine, or of the quota around it, 0 to 1.
    pub client: f64,
    /// Of the system, of what it could have had: the cores that it is held to, else what client and other programs left
    /// of that. 1: the system had all of it; somewhat above where the clocks were read at different moments.
    /// Absent where the system is out of sight.
    pub system: Option<f64>,
}

/// The shares of a trial; `None` where workers ran on other hosts, whose processors are not known.
pub fn shares(trial: &Trial) -> Option<Shares> {
    let machine = trial.circumstances.processors();
    if machine == 0.0 || trial.duration_s <= 0.0 || !trial.hosts.is_empty() {
        return None;
    }
    let client = trial.client_cpu_s.total() / trial.duration_s;
    let could_have = match trial.limits.as_ref().and_then(held) {
        Some(cores) => Some(cores),
        None => trial
            .worker_load
            .machine_others
            .map(|others| machine - client - others),
    };
    let system =
        || Some(trial.system_cpu_s? / trial.duration_s / could_have.filter(|cores| *cores > 0.0)?);
    Some(Shares {
        client: client / machine,
        system: system(),
    })
}

/// The cores that all instances of a system together are held to; `None`: they are not.
fn held(limits: &HeldLimits) -> Option<f64> {
    limits.cores_by.as_ref()?;
    Some(limits.cores? * f64::from(limits.instances.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::WorkerHost;
    use crate::model::{Circumstances, ClientCpu, WorkerLoad};

    /// 10 s on 4 processors: the client used 1, the system 1.5, others 0.5.
    fn trial() -> Trial {
        Trial {
            duration_s: 10.0,
            client_cpu_s: ClientCpu {
                publishers: 6.0,
                subscribers: 4.0,
                ..ClientCpu::default()
            },
            system_cpu_s: Some(15.0),
            circumstances: Circumstances {
                cores: 4,
                ..Circumstances::default()
            },
            worker_load: WorkerLoad {
                machine_others: Some(0.5),
                ..WorkerLoad::default()
            },
            ..Trial::default()
        }
    }

    #[test]
    fn the_system_could_have_had_what_others_left() {
        let (client, system) = (0.25, Some(0.6));
        assert_eq!(shares(&trial()), Some(Shares { client, system }));
    }

    /// 10 s: of 4 processors a container has 2.
    #[test]
    fn a_quota_is_all_that_there_is() {
        let mut trial = trial();
        trial.circumstances.quota_cores = Some(2.0);
        let used = shares(&trial).unwrap();
        assert_eq!((used.client, used.system), (0.5, Some(3.0)));
        trial.circumstances.quota_cores = Some(6.0);
        assert_eq!(shares(&trial).unwrap().client, 0.25, "more than there is");
    }

    #[test]
    fn a_held_system_could_have_had_its_share() {
        let mut trial = trial();
        let mut limits = HeldLimits {
            instances: 2,
            cores: Some(1.0),
            ..HeldLimits::default()
        };
        trial.limits = Some(limits.clone());
        assert_eq!(
            shares(&trial).unwrap().system,
            Some(0.6),
            "asked for, not held"
        );
        limits.cores_by = Some("a quota".into());
        trial.limits = Some(limits);
        assert_eq!(shares(&trial).unwrap().system, Some(0.75));
    }

    #[test]
    fn what_is_out_of_sight_has_no_share() {
        let mut unseen = trial();
        unseen.system_cpu_s = None;
        unseen.worker_load.machine_others = None;
        assert_eq!(shares(&unseen).unwrap().system, None);
        let mut elsewhere = trial();
        elsewhere.hosts = vec![WorkerHost::default()];
        assert_eq!(shares(&elsewhere), None);
        assert_eq!(shares(&Trial::default()), None);
    }
}
