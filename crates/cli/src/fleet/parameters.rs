//! The parameters of a template.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};

use super::manifests;
use crate::arguments::{distinct, parse_parameter};
use crate::error::Error;

#[derive(Debug, Clone, Default, Args)]
pub struct TemplateParameters {
    /// A parameter of the template: an integer, true or false, or a text
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_parameter)]
    pub parameters: Vec<(String, Value)>,
    /// Parameters from a file, as YAML or JSON; --param wins over it
    #[arg(long = "params", value_name = "FILE")]
    pub parameters_file: Option<PathBuf>,
}

impl TemplateParameters {
    pub(crate) fn value(self) -> Result<Value, Error> {
        let mut all = match &self.parameters_file {
            Some(path) => {
                let wrong = |problem: String| Error::Usage(format!("--params: {problem}"));
                let text = manifests::read(path).map_err(wrong)?;
                let read: Map<String, Value> = serde_yaml_ng::from_str(&text)
                    .map_err(|error| wrong(format!("`{}`: {error}", path.display())))?;
                read
            }
            None => Map::new(),
        };
        all.extend(distinct("--param", self.parameters)?);
        Ok(Value::Object(all))
    }
}
