//! The matrix of capabilities: what each system can do, by its driver and its file.

use pubgauge_campaign::capabilities::of_system;
use pubgauge_campaign::split;
use pubgauge_command::exit::Ending;
use pubgauge_driver::{Capability, Support};
use pubgauge_figures::model::{CapabilityAnswer, SystemCapabilities};
use pubgauge_quantities::text::wrap;
use pubgauge_testbed::{Catalog, SystemFile};

use crate::drivers;

/// A column of the matrix: a system in one of its variants.
pub struct SystemColumn {
    /// `NAME` or `NAME:VARIANT`, and its answers in the order of [`Capability::ALL`]; none if no driver speaks to it.
    pub system: SystemCapabilities,
    /// Why there are no answers.
    pub missing: Option<String>,
}

/// The columns of all systems whose name or `NAME:VARIANT` is in `only`; of all, if it is empty.
pub fn columns(catalog: &Catalog, only: &[String]) -> Result<Vec<SystemColumn>, Ending> {
    for name in only {
        let (plain, variant) = split(name);
        let system = catalog.get(plain).map_err(Ending::bad_input)?;
        system.variant(variant).map_err(Ending::bad_input)?;
    }
    let wanted = |name: &str, variant: Option<&str>| {
        only.is_empty()
            || only.iter().any(|o| {
                let (plain, which) = split(o);
                plain == name && (which.is_none() || which == variant)
            })
    };
    let mut columns = Vec::new();
    for system in catalog.systems() {
        let mut variants: Vec<Option<&str>> =
            system.variants.keys().map(|v| Some(v.as_str())).collect();
        if variants.is_empty() {
            variants.push(None);
        }
        for variant in variants {
            if wanted(&system.name, variant) {
                columns.push(column(system, variant)?);
            }
        }
    }
    Ok(columns)
}

fn column(system: &SystemFile, variant: Option<&str>) -> Result<SystemColumn, Ending> {
    let name = match variant {
        Some(variant) => format!("{}:{variant}", system.name),
        None => system.name.clone(),
    };
    let file = system.variant(variant).map_err(Ending::bad_input)?;
    Ok(match drivers::all().by_name(&file.driver) {
        Some(driver) => SystemColumn {
            system: of_system(&name, &file, driver.as_ref()),
            missing: None,
        },
        None => SystemColumn {
            system: SystemCapabilities {
                system: name,
                answers: Vec::new(),
            },
            missing: Some(match &file.install.note {
                Some(note) => note.clone(),
                None => format!("no driver `{}`", file.driver),
            }),
        },
    })
}

/// The matrix as text: a grid of marks for many systems, full answers for one or two.
pub fn render(columns: &[SystemColumn]) -> String {
    if columns.len() <= 2 {
        columns.iter().map(render_column).collect()
    } else {
        grid(columns)
    }
}

fn mark(support: Support) -> char {
    match support {
        Support::Native => '+',
        Support::Emulated => '~',
        Support::Broken => '!',
        Support::Unsupported => '-',
    }
}

fn render_column(column: &SystemColumn) -> String {
    let mut out = format!("{}\n", column.system.system);
    if let Some(missing) = &column.missing {
        out.push_str(&wrap(missing, 2));
    }
    for CapabilityAnswer { capability, answer } in &column.system.answers {
        let words = wrap(&answer.words, 6);
        out.push_str(&format!("  {} {capability}\n{words}", mark(answer.support)));
    }
    out.push_str(LEGEND);
    out
}

const LEGEND: &str = "\n  + the system has it     ~ the driver makes it from what the system has\n  - cannot be had         ! promised, and measured to be broken\n";

fn grid(columns: &[SystemColumn]) -> String {
    let widest = Capability::ALL
        .iter()
        .map(|c| c.to_string().len())
        .max()
        .unwrap_or(0);
    let letters: Vec<char> = ('A'..='Z').chain('a'..='z').collect();
    let letter = |n: usize| letters.get(n).copied().unwrap_or('?');
    let mut out = format!("{:widest$}  ", "");
    for n in 0..columns.len() {
        out.push(letter(n));
        out.push(' ');
    }
    out = format!("{}\n", out.trim_end());
    for (row, capability) in Capability::ALL.iter().enumerate() {
        let mut line = format!("{:widest$}  ", capability.to_string());
        for column in columns {
            let answer = column.system.answers.get(row);
            line.push(answer.map_or(' ', |known| mark(known.answer.support)));
            line.push(' ');
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.push('\n');
    for (n, column) in columns.iter().enumerate() {
        let missing = column.missing.as_ref();
        let missing = missing.map_or(String::new(), |m| format!(": {m}"));
        let legend = wrap(
            &format!("{} {}{missing}", letter(n), column.system.system),
            4,
        );
        out.push_str(&legend.replacen("    ", "  ", 1));
    }
    out.push_str(LEGEND);
    out.push_str(&wrap(
        "what each cell is in the system's own terms: pubgauge systems --matrix --on SYSTEM",
        2,
    ));
    out
}
