//! `pubgauge systems`: what is known, what is found here, and how to get the rest.

use pubgauge_command::exit::{Ending, FINE};
use pubgauge_quantities::text::wrap;
use pubgauge_testbed::{Catalog, Listing};

use crate::args::SystemsArgs;
use crate::drivers;
use crate::{install, matrix};

/// Lists the systems, or installs some.
pub fn systems(args: &SystemsArgs) -> Result<i32, Ending> {
    let catalog = Catalog::load(&args.systems).map_err(Ending::bad_input)?;
    if !args.install.is_empty() {
        return install::install(&catalog, &args.install, args.yes, args.output);
    }
    if args.matrix {
        let columns = matrix::columns(&catalog, &args.on)?;
        let answers: Vec<_> = columns.iter().map(|column| &column.system).collect();
        args.output
            .print_result(&answers, || matrix::render(&columns));
        return Ok(FINE);
    }
    let testbed = drivers::testbed().map_err(Ending::not_valid)?;
    let listings = catalog.list(&testbed);
    args.output.print_result(&listings, || describe(&listings));
    Ok(FINE)
}

fn describe(listings: &[Listing]) -> String {
    let mut out = String::new();
    let widest = listings.iter().map(|l| l.name.len()).max().unwrap_or(0);
    let drivers = listings.iter().map(|l| l.driver.len()).max().unwrap_or(0);
    for l in listings {
        let state = match (l.found, &l.version) {
            (true, Some(version)) => format!("found     {version}"),
            (true, None) => "found".into(),
            (false, _) => "not found".into(),
        };
        out.push_str(&format!(
            "{:widest$}  {:drivers$}  {state}\n",
            l.name, l.driver
        ));
        out.push_str(&wrap(&l.description, 4));
        if !l.variants.is_empty() {
            let names: Vec<String> = l
                .variants
                .iter()
                .map(|v| format!("{}:{v}", l.name))
                .collect();
            out.push_str(&wrap(&format!("variants: {}", names.join(", ")), 4));
        }
        if !l.tunable.is_empty() {
            let each = l.tunable.iter();
            let each: Vec<String> = each
                .map(|tunable| format!("{} ({})", tunable.path(&l.name), tunable.range()))
                .collect();
            out.push_str(&wrap(&format!("can be tuned: {}", each.join("; ")), 4));
        }
        if !l.found {
            if let Some(reason) = &l.reason {
                out.push_str(&wrap(reason, 4));
            }
            for install in &l.install {
                for command in &install.commands {
                    // A command is never wrapped: users copy it.
                    out.push_str(&format!("    install: {command}\n"));
                }
            }
        }
        for note in &l.notes {
            out.push_str(&wrap(note, 4));
        }
        for (capability, instead) in l.deviations.iter().chain(&l.remarks) {
            out.push_str(&wrap(&format!("measured, {capability}: {instead}"), 4));
        }
    }
    out
}
