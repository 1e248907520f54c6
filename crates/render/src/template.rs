//! Templates of Fleet, in the language of Tera 1, which existing templates are written in.
//!
//! A template can loop for ever and ask for any memory, and nothing here stops it: run this in
//! a process of its own with limits, as the binary does.

use serde_json::Value;
use tera::{Context, Tera};

/// Whether this is a template, and if not, where it is at fault.
pub fn check(template: &str) -> Result<(), String> {
    Tera::default().add_raw_template(NAME, template).map_err(|error| said(&error))
}

/// The text of a template with these parameters. Its functions know neither the time nor chance,
/// so the same parameters give the same text.
pub fn render(template: &str, parameters: &Value) -> Result<String, String> {
    let context = Context::from_value(parameters.clone()).map_err(|error| said(&error))?;
    let mut tera = Tera::default();
    // They are values for YAML, not for HTML.
    tera.autoescape_on(Vec::new());
    tera.add_raw_template(NAME, template).map_err(|error| said(&error))?;
    tera.render(NAME, &context).map_err(|error| said(&error))
}

const NAME: &str = "template";

/// An error with its causes, in one line.
fn said(error: &tera::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_filled_in_as_they_are() {
        let template = "name: {{ name }}\n{% for port in ports %}- {{ port }}\n{% endfor %}";
        let parameters = json!({ "name": "a<b>&\"c\"", "ports": [80, 443] });
        let text = render(template, &parameters).unwrap();
        assert_eq!(text, "name: a<b>&\"c\"\n- 80\n- 443\n");
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(check("{{ name").unwrap_err().contains("template"));
        let missing = render("{{ nobody }}", &json!({})).unwrap_err();
        assert!(missing.contains("nobody"), "{missing}");
        assert!(render("x", &json!([])).is_err());
        assert!(
            check("{% include \"other\" %}").is_err()
                || render("{% include \"other\" %}", &json!({})).is_err()
        );
    }
}
