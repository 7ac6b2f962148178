//! What was measured, and what is required of it.

use serde_json::{Value, json};

/// A measured figure.
pub struct Figure {
    /// What was measured, with its part's name in front.
    pub what: String,
    /// How much of it.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
    /// What it must be.
    pub required: Required,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Required {
    /// It is there for comparison.
    Nothing,
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// Something is required that this run did not measure, for the reason given. It counts as missed.
    Unmeasured(&'static str),
}

impl Figure {
    /// Whether it is not what it must be.
    pub fn is_missed(&self) -> bool {
        match self.required {
            Required::Nothing => false,
            Required::AtMost(most) => self.value > most,
            Required::AtLeast(least) => self.value < least,
            Required::Unmeasured(_) => true,
        }
    }

    /// For people.
    pub fn print(&self) {
        let required = match self.required {
            Required::Nothing => String::new(),
            Required::AtMost(most) => format!("  at most {most}"),
            Required::AtLeast(least) => format!("  at least {least}"),
            Required::Unmeasured(why) => format!("  not what is required: {why}"),
        };
        let missed = if self.is_missed() { "  MISSED" } else { "" };
        println!("{:<52}{:>10.3} {}{required}{missed}", self.what, self.value, self.unit);
    }

    /// For records.
    pub fn to_json(&self) -> Value {
        let required = match self.required {
            Required::Nothing => Value::Null,
            Required::AtMost(most) => json!({ "at_most": most }),
            Required::AtLeast(least) => json!({ "at_least": least }),
            Required::Unmeasured(why) => json!({ "unmeasured": why }),
        };
        json!({ "what": self.what, "value": self.value, "unit": self.unit, "required": required })
    }
}

/// The value that so much of a list lies below: 0.5 gives the median.
///
/// # Panics
/// When the list is empty.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_missed_beyond_its_bound_and_where_nothing_was_measured() {
        let missed = |required| Figure { what: String::new(), value: 2.0, unit: "", required }.is_missed();
        assert!(missed(Required::AtMost(1.9)) && missed(Required::AtLeast(2.1)) && missed(Required::Unmeasured("")));
        assert!(!missed(Required::AtMost(2.0)) && !missed(Required::AtLeast(2.0)) && !missed(Required::Nothing));
    }

    #[test]
    fn a_quantile_is_a_value_of_the_list() {
        let mut values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!([0.0, 0.5, 0.99].map(|share| quantile(&mut values, share)), [1.0, 3.0, 5.0]);
    }
}
