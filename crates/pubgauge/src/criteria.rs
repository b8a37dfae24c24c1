//! A study's criteria in the names and units of `results.json`.

use pubgauge_results::criterion::{Comparison, CriterionSpec, Filter};
use pubgauge_results::model::Status;
use pubgauge_study as study;
use study::{Count, Criterion, Distribution, Figure, Limit, Plan, RateOf, Statistic};

/// A criterion of `plan` as results are evaluated by.
pub fn spec(criterion: &Criterion, plan: &Plan) -> CriterionSpec {
    let value = match &criterion.value {
        Limit::Number(number) => *number,
        Limit::Verdict(word) => {
            serde_json::from_value::<Status>(serde_json::Value::String(word.clone()))
                .map_or(f64::NAN, |status| f64::from(status as u8))
        }
    };
    let one = |name: &Option<String>| name.iter().cloned().collect::<Vec<_>>();
    CriterionSpec {
        text: criterion.text.clone(),
        figure: match &criterion.filter.window {
            None => figure(criterion.figure),
            Some(window) => format!("{}@{window}", figure(criterion.figure)),
        },
        comparison: match criterion.comparison {
            study::Comparison::Below => Comparison::Less,
            study::Comparison::AtMost => Comparison::AtMost,
            study::Comparison::Above => Comparison::Greater,
            study::Comparison::AtLeast => Comparison::AtLeast,
            study::Comparison::Equals => Comparison::Equal,
        },
        value,
        filter: Filter {
            systems: one(&criterion.filter.system),
            workloads: one(&criterion.filter.workload),
            cells: cells(criterion, plan),
            flow: criterion.filter.flow.clone(),
        },
    }
}

/// The cells with the settings that the criterion is about; empty stands for all.
fn cells(criterion: &Criterion, plan: &Plan) -> Vec<String> {
    let Some(settings) = &criterion.filter.settings else {
        return Vec::new();
    };
    let mut cells: Vec<String> = plan
        .trials
        .iter()
        .filter(|t| t.settings_name == *settings)
        .map(|t| t.cell.clone())
        .collect();
    if cells.is_empty() {
        // None, not all: no cell has an empty name.
        cells.push(String::new());
    }
    cells
}

fn figure(figure: Figure) -> String {
    let name = match figure {
        Figure::Count(count) => match count {
            Count::Published => "published",
            Count::Refused => "refused",
            Count::NotSent => "not_sent",
            Count::UnderWay => "under_way",
            Count::Delivered => "delivered",
            Count::Lost => "lost",
            Count::Duplicated => "duplicated",
            Count::Reordered => "reordered",
        },
        Figure::Rate(RateOf::Offered) => "offered_msgs_per_s",
        Figure::Rate(RateOf::Published) => "published_msgs_per_s",
        Figure::Rate(RateOf::Delivered) => "delivered_msgs_per_s",
        Figure::Time(distribution, statistic) => return time(distribution, statistic),
        Figure::LossShare => "lost_share",
        Figure::ClientCpu => "client_cpu_total_s",
        Figure::SystemCpu => "system_cpu_s",
        Figure::ClientMemory => "client_rss_bytes",
        Figure::SystemMemory => "system_rss_bytes",
        Figure::Verdict => "verdict",
    };
    name.to_owned()
}

fn time(distribution: Distribution, statistic: Statistic) -> String {
    let distribution = match distribution {
        Distribution::Latency => "latency_ns",
        Distribution::LatencyFromSend => "latency_from_send_ns",
        Distribution::SendLag => "send_lag_ns",
        Distribution::RoundTrip => "round_trip_ns",
        Distribution::Acknowledgement => "acknowledgement_ns",
    };
    let statistic = match statistic {
        Statistic::Min => "min",
        Statistic::Mean => "mean",
        Statistic::P50 => "p50",
        Statistic::P90 => "p90",
        Statistic::P99 => "p99",
        Statistic::P99_9 => "p99_9",
        Statistic::P99_99 => "p99_99",
        Statistic::Max => "max",
    };
    format!("{distribution}.{statistic}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_results::criterion::is_figure;

    /// Claims find figures by this.
    #[test]
    fn results_have_the_names_that_studies_have() {
        use pubgauge_results::criterion::recorded_name;
        for name in Figure::names() {
            assert_eq!(pubgauge_study::figure_name(&recorded_name(&name)), name);
            assert!(is_figure(&recorded_name(&name)), "{name}");
        }
    }

    #[test]
    fn every_figure_of_a_study_exists_in_the_results() {
        use Distribution::*;
        use Statistic::*;
        let counts = [
            Count::Published,
            Count::Refused,
            Count::NotSent,
            Count::UnderWay,
            Count::Delivered,
            Count::Lost,
            Count::Duplicated,
            Count::Reordered,
        ];
        let mut figures: Vec<Figure> = counts.into_iter().map(Figure::Count).collect();
        figures.extend([RateOf::Offered, RateOf::Published, RateOf::Delivered].map(Figure::Rate));
        for d in [
            Latency,
            LatencyFromSend,
            SendLag,
            RoundTrip,
            Acknowledgement,
        ] {
            figures
                .extend([Min, Mean, P50, P90, P99, P99_9, P99_99, Max].map(|s| Figure::Time(d, s)));
        }
        figures.extend([
            Figure::LossShare,
            Figure::ClientCpu,
            Figure::SystemCpu,
            Figure::ClientMemory,
            Figure::SystemMemory,
            Figure::Verdict,
        ]);
        for each in figures {
            assert!(
                is_figure(&figure(each)),
                "{each:?} is no figure of results.json"
            );
        }
    }
}
