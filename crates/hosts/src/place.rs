//! Which worker this is, and where the conductor is, from variables that the worker's launcher has set.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// The port of a conductor whose address has none.
pub const DEFAULT_PORT: u16 = 17_631;

/// Variables with rank and size. The innermost first: a batch script's own Slurm variables are seen by what
/// `mpirun` starts in it too.
const RANKS: [(&str, Option<&str>); 4] = [
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("PMI_RANK", Some("PMI_SIZE")),
    ("SLURM_PROCID", Some("SLURM_NTASKS")),
    ("JOB_COMPLETION_INDEX", None),
];
const CONDUCTOR: &str = "SLURM_LAUNCH_NODE_IPADDR";

/// A worker's number among those of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// From 0.
    pub rank: u32,
    /// How many there are; `None` if what started the worker does not say.
    pub size: Option<u32>,
}

/// Why it is not known which worker this is, or where the conductor is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// No variable of the environment has the rank.
    #[error(
        "nothing tells this worker its rank\n  hint: expected SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK or JOB_COMPLETION_INDEX in the environment, as srun, mpirun and Kubernetes' Indexed Jobs set them"
    )]
    NoRank,
    /// The value of a variable is not a possible number.
    #[error("{variable} is {value:?}; expected {expected}")]
    Number {
        /// Its name.
        variable: String,
        /// What it is.
        value: String,
        /// What it should be.
        expected: String,
    },
    /// Neither an argument nor the environment has the conductor's address.
    #[error(
        "nothing tells where the conductor is\n  hint: --join HOST:PORT; under srun SLURM_LAUNCH_NODE_IPADDR tells it"
    )]
    NoConductor,
    /// Text that is not an address.
    #[error("{0:?} is no address of a conductor; expected HOST, HOST:PORT or [IPv6]:PORT")]
    Address(String),
}

/// The rank and the size in the environment.
///
/// # Errors
/// If there is no rank, or a number that is not possible.
pub fn rank(variable: impl Fn(&str) -> Option<String>) -> Result<Rank, PlaceError> {
    let found = RANKS
        .iter()
        .find_map(|(rank, size)| Some((rank, size, variable(rank)?)));
    let (name, size_name, rank) = found.ok_or(PlaceError::NoRank)?;
    let rank = number(name, &rank, "a number from 0", |_| true)?;
    let size = size_name.and_then(|name| Some((name, variable(name)?)));
    let size = size.map(|(name, size)| {
        let expected = format!("a number above the rank, {rank}");
        number(name, &size, &expected, |size| size > rank)
    });
    let size = size.transpose()?;
    Ok(Rank { rank, size })
}

fn number(
    variable: &str,
    value: &str,
    expected: &str,
    fits: impl Fn(u32) -> bool,
) -> Result<u32, PlaceError> {
    let number = value.trim().parse().ok().filter(|number| fits(*number));
    number.ok_or_else(|| PlaceError::Number {
        variable: variable.into(),
        value: value.into(),
        expected: expected.into(),
    })
}

/// Where a conductor listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address.
    pub host: String,
    /// [`DEFAULT_PORT`] if none was given.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for Address {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Address, PlaceError> {
        let wrong = || PlaceError::Address(text.into());
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
                host.parse::<Ipv6Addr>().map_err(|_| wrong())?;
                match rest {
                    "" => (host, None),
                    rest => (host, Some(rest.strip_prefix(':').ok_or_else(wrong)?)),
                }
            }
            None if text.parse::<Ipv6Addr>().is_ok() => (text, None),
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(wrong)?,
        };
        let is_name = |c: char| !c.is_whitespace() && !c.is_control() && c != '/' && c != '@';
        if host.is_empty() || !host.chars().all(is_name) {
            return Err(wrong());
        }
        let host = host.to_owned();
        Ok(Address { host, port })
    }
}

/// Where the conductor is: as asked, else on the host from which Slurm's `srun` was started.
///
/// # Errors
/// If neither is there, or what is there is not an address.
pub fn conductor(
    asked: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Address, PlaceError> {
    match asked {
        Some(asked) => asked.parse(),
        None => variable(CONDUCTOR).ok_or(PlaceError::NoConductor)?.parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(set: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| {
            let found = set.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    }

    fn known(rank: u32, size: Option<u32>) -> Result<Rank, PlaceError> {
        Ok(Rank { rank, size })
    }

    #[test]
    fn each_starter_tells_the_rank() {
        let slurm = [("SLURM_PROCID", "3"), ("SLURM_NTASKS", "8")];
        assert_eq!(rank(of(&slurm)), known(3, Some(8)));
        let mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
        assert_eq!(rank(of(&mpi)), known(1, Some(2)));
        assert_eq!(
            rank(of(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")])),
            known(0, Some(1))
        );
        assert_eq!(rank(of(&[("JOB_COMPLETION_INDEX", "5")])), known(5, None));
        // mpirun in a batch script of Slurm's.
        assert_eq!(
            rank(of(&[&slurm[..], &mpi[..]].concat())),
            known(1, Some(2))
        );
    }

    #[test]
    fn nonsense_is_told_by_name() {
        assert_eq!(rank(of(&[])), Err(PlaceError::NoRank));
        for wrong in ["", "-1", "x", "4294967296", "1.5"] {
            let error = rank(of(&[("SLURM_PROCID", wrong)]))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("SLURM_PROCID") && error.contains("expected"),
                "{error}"
            );
        }
        let error = rank(of(&[("PMI_RANK", "2"), ("PMI_SIZE", "2")])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "PMI_SIZE is \"2\"; expected a number above the rank, 2"
        );
    }

    #[test]
    fn addresses_are_read_and_written() {
        for (text, host, port) in [
            ("node1:9000", "node1", 9_000),
            ("node1", "node1", DEFAULT_PORT),
            ("10.0.0.7:1", "10.0.0.7", 1),
            ("[::1]:65535", "::1", 65_535),
            ("[fe80::1]", "fe80::1", DEFAULT_PORT),
            ("fe80::1", "fe80::1", DEFAULT_PORT),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port));
            assert_eq!(address.to_string().parse(), Ok(address));
        }
        for wrong in [
            "", ":1", "a:", "a:0", "a:65536", "a:b", "[::1", "[a]:1", "[::1]1", "a b:1", "a/b",
            "u@a:1", "a:1:2",
        ] {
            assert_eq!(
                wrong.parse::<Address>(),
                Err(PlaceError::Address(wrong.into()))
            );
        }
    }

    #[test]
    fn the_conductor_is_where_it_was_asked_for_or_where_srun_was() {
        let slurm = [(CONDUCTOR, "10.1.2.3")];
        let there = |text: &str| Ok(text.parse().unwrap());
        assert_eq!(conductor(Some("a:1"), of(&slurm)), there("a:1"));
        assert_eq!(conductor(None, of(&slurm)), there("10.1.2.3"));
        assert_eq!(conductor(None, of(&[])), Err(PlaceError::NoConductor));
    }
}
