//! A list of ids as one parameter: an array in PostgreSQL, JSON text in SQLite.
//!
//! Used with the fragment `(one_of "$n")`. It is one parameter whatever the
//! length, so a statement is prepared once and a batch is one round trip.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::{Database, Encode, Postgres, Sqlite, Type};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub(crate) struct IdList(pub(crate) Vec<Uuid>);

impl Type<Postgres> for IdList {
    fn type_info() -> <Postgres as Database>::TypeInfo {
        <Vec<Uuid> as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for IdList {
    fn encode_by_ref(
        &self,
        buffer: &mut <Postgres as Database>::ArgumentBuffer,
    ) -> Result<IsNull, BoxDynError> {
        <Vec<Uuid> as Encode<'_, Postgres>>::encode_by_ref(&self.0, buffer)
    }
}

impl Type<Sqlite> for IdList {
    fn type_info() -> <Sqlite as Database>::TypeInfo {
        <String as Type<Sqlite>>::type_info()
    }
}

impl Encode<'_, Sqlite> for IdList {
    fn encode_by_ref(
        &self,
        buffer: &mut <Sqlite as Database>::ArgumentBuffer,
    ) -> Result<IsNull, BoxDynError> {
        <String as Encode<'_, Sqlite>>::encode(self.as_json(), buffer)
    }
}

impl IdList {
    fn as_json(&self) -> String {
        let ids: Vec<String> = self.0.iter().map(|id| format!("\"{}\"", id.simple())).collect();
        format!("[{}]", ids.join(","))
    }
}

impl<T: Into<Uuid>> FromIterator<T> for IdList {
    fn from_iter<I: IntoIterator<Item = T>>(ids: I) -> Self {
        Self(ids.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_gets_hexadecimal_that_unhex_understands() {
        let list = IdList(vec![Uuid::from_u128(1), Uuid::from_u128(0xff)]);
        assert_eq!(
            list.as_json(),
            "[\"00000000000000000000000000000001\",\"000000000000000000000000000000ff\"]"
        );
        assert_eq!(IdList(Vec::new()).as_json(), "[]");
    }
}
