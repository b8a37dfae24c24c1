//! Addresses of hosts: static, from a private range that overlaps with no route of the machine.

use std::fmt;
use std::net::Ipv4Addr;

use serde_json::Value;

/// Length of a network's prefix in bits: enough for 254 hosts.
pub const PREFIX: u8 = 24;

/// A range of addresses, such as 10.87.0.0/24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// Its first address.
    pub base: Ipv4Addr,
    /// Length of the prefix that all addresses share, in bits; 0 to 32.
    pub prefix: u8,
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl Subnet {
    /// Whether it overlaps with another.
    pub fn meets(&self, other: &Subnet) -> bool {
        let shared = self.prefix.min(other.prefix);
        let mask = u32::MAX.checked_shl(32 - u32::from(shared)).unwrap_or(0);
        u32::from(self.base) & mask == u32::from(other.base) & mask
    }

    /// A subnet within the private ranges (RFC 1918) that overlaps with none of the machine's
    /// routes; `None` if every one that is tried overlaps with a route.
    pub fn free_subnet(routes: &[Subnet]) -> Option<Subnet> {
        let tens = (0..=255u8).map(|i| Ipv4Addr::new(10, i.wrapping_add(87), 0, 0));
        let twelves = (16..32).map(|i| Ipv4Addr::new(172, i, 0, 0));
        let sixteens = (0..=255).map(|i| Ipv4Addr::new(192, 168, i, 0));
        let mut all = tens.chain(twelves).chain(sixteens).map(|base| Subnet {
            base,
            prefix: PREFIX,
        });
        let free = |subnet: &Subnet| !routes.iter().any(|route| route.meets(subnet));
        all.find(free)
    }

    /// The address of the host with this index, from 0.
    pub fn host(&self, index: usize) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.base) + index as u32 + 1)
    }
}

/// The hardware address of the host with this index: locally administered, the same in each network, and with
/// the last byte of its address.
pub(crate) fn hardware(index: usize) -> String {
    format!("02:00:00:00:00:{:02x}", index + 1)
}

/// The routes in the output of `ip -json -4 route show table all`, without default routes, which overlap with
/// everything.
///
/// # Errors
/// If it is not a list of routes.
pub fn routes(json: &str) -> Result<Vec<Subnet>, String> {
    let list: Vec<Value> = match json.trim() {
        "" => Vec::new(),
        text => serde_json::from_str(text).map_err(|error| error.to_string())?,
    };
    let targets = list.iter().filter_map(|route| route["dst"].as_str());
    let given = targets.filter(|target| *target != "default" && *target != "0.0.0.0/0");
    given.map(parse).collect()
}

fn parse(target: &str) -> Result<Subnet, String> {
    let (base, prefix) = target.split_once('/').unwrap_or((target, "32"));
    let wrong = || format!("`{target}` is not a range of IPv4 addresses");
    let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
    match base.parse() {
        Ok(base) if prefix <= 32 => Ok(Subnet { base, prefix }),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn routes_are_read_and_default_ones_are_none() {
        let json = r#"[{"dst":"default","gateway":"192.0.2.1"},{"dst":"10.87.0.0/16"},
            {"type":"local","dst":"192.0.2.2"},{"dst":"127.0.0.0/8"}]"#;
        let found: Vec<_> = routes(json)
            .unwrap()
            .iter()
            .map(Subnet::to_string)
            .collect();
        assert_eq!(found, ["10.87.0.0/16", "192.0.2.2/32", "127.0.0.0/8"]);
        assert_eq!(routes(""), Ok(vec![]));
        assert!(routes("[{\"dst\":\"ten\"}]").unwrap_err().contains("`ten`"));
        assert!(routes("{").is_err());
    }

    #[test]
    fn a_machine_whose_routes_take_everything_is_told() {
        let all = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"].map(|r| parse(r).unwrap());
        assert_eq!(Subnet::free_subnet(&all), None);
        assert_eq!(
            Subnet::free_subnet(&all[..2]).unwrap().to_string(),
            "192.168.0.0/24"
        );
        assert_eq!(
            Subnet::free_subnet(&[]).unwrap().to_string(),
            "10.87.0.0/24"
        );
    }

    proptest! {
        #[test]
        fn what_is_chosen_meets_no_route(
            targets in prop::collection::vec((0u32.., 1u8..=32, any::<bool>()), 0..40)
        ) {
            let routes: Vec<Subnet> = targets
                .into_iter()
                // Half of the routes lie near the first choices.
                .map(|(base, prefix, near)| if near { (base % (1 << 20) + 0x0a57_0000, prefix.max(12)) } else { (base, prefix) })
                .map(|(base, prefix)| Subnet { base: Ipv4Addr::from(base), prefix })
                .collect();
            if let Some(chosen) = Subnet::free_subnet(&routes) {
                for index in [0, 253] {
                    let host = Subnet { base: chosen.host(index), prefix: 32 };
                    prop_assert!(host.meets(&chosen));
                    prop_assert!(!routes.iter().any(|route| route.meets(&host)));
                }
            }
        }
    }
}
