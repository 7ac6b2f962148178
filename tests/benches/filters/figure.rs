//! What was measured, and what is required of it.

use serde_json::{Value, json};

/// A measured figure.
pub struct Figure {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    pub required: Required,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Required {
    Nothing,
    AtMost(f64),
    AtLeast(f64),
}

impl Figure {
    /// Whether it is not what it must be.
    pub fn is_missed(&self) -> bool {
        match self.required {
            Required::Nothing => false,
            Required::AtMost(most) => self.value > most,
            Required::AtLeast(least) => self.value < least,
        }
    }

    /// For people.
    pub fn print(&self) {
        let required = match self.required {
            Required::Nothing => String::new(),
            Required::AtMost(most) => format!("  at most {most}"),
            Required::AtLeast(least) => format!("  at least {least}"),
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
        };
        json!({ "what": self.what, "value": self.value, "unit": self.unit, "required": required })
    }
}

/// The value that so much of a list lies below: 0.5 gives the median.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}
