//! Conversion of time between core and a database: `timestamptz` in PostgreSQL,
//! whole microseconds since the Unix epoch in SQLite.
//!
//! Our own type rather than a driver's: it keeps the full range and resolution
//! of both columns, and needs no time library between two integers.

use slipway_core::time::Timestamp;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::{Database, Decode, Encode, Postgres, Sqlite, Type};

/// Microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Micros(pub(crate) i64);

/// PostgreSQL counts from 2000-01-01: 30 years of 365 days and 7 leap days.
const POSTGRES_EPOCH: i64 = (30 * 365 + 7) * 24 * 60 * 60 * 1_000_000;

impl From<Timestamp> for Micros {
    fn from(timestamp: Timestamp) -> Self {
        Self(timestamp.as_micros())
    }
}

impl From<Micros> for Timestamp {
    fn from(micros: Micros) -> Self {
        Self::from_micros(micros.0)
    }
}

impl Type<Postgres> for Micros {
    fn type_info() -> <Postgres as Database>::TypeInfo {
        sqlx::postgres::PgTypeInfo::with_name("timestamptz")
    }
}

impl sqlx::postgres::PgHasArrayType for Micros {
    fn array_type_info() -> <Postgres as Database>::TypeInfo {
        sqlx::postgres::PgTypeInfo::with_name("_timestamptz")
    }
}

impl Encode<'_, Postgres> for Micros {
    fn encode_by_ref(
        &self,
        buffer: &mut <Postgres as Database>::ArgumentBuffer,
    ) -> Result<IsNull, BoxDynError> {
        let since_2000 = self.0.checked_sub(POSTGRES_EPOCH).ok_or("the time is out of range")?;
        buffer.extend_from_slice(&since_2000.to_be_bytes());
        Ok(IsNull::No)
    }
}

impl Decode<'_, Postgres> for Micros {
    fn decode(value: <Postgres as Database>::ValueRef<'_>) -> Result<Self, BoxDynError> {
        // All our statements are prepared, and prepared ones answer in binary;
        // text here means that somebody ran a raw query.
        if value.format() != sqlx::postgres::PgValueFormat::Binary {
            return Err("a time arrived as text; read it through a prepared statement".into());
        }
        let since_2000 = i64::from_be_bytes(value.as_bytes()?.try_into()?);
        let micros = since_2000.checked_add(POSTGRES_EPOCH).ok_or("the time is out of range")?;
        Ok(Self(micros))
    }
}

impl Type<Sqlite> for Micros {
    fn type_info() -> <Sqlite as Database>::TypeInfo {
        <i64 as Type<Sqlite>>::type_info()
    }

    fn compatible(other: &<Sqlite as Database>::TypeInfo) -> bool {
        <i64 as Type<Sqlite>>::compatible(other)
    }
}

impl Encode<'_, Sqlite> for Micros {
    fn encode_by_ref(
        &self,
        buffer: &mut <Sqlite as Database>::ArgumentBuffer,
    ) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, Sqlite>>::encode_by_ref(&self.0, buffer)
    }
}

impl Decode<'_, Sqlite> for Micros {
    fn decode(value: <Sqlite as Database>::ValueRef<'_>) -> Result<Self, BoxDynError> {
        <i64 as Decode<'_, Sqlite>>::decode(value).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_postgres_epoch_is_the_year_2000() {
        let epoch: Timestamp = Micros(POSTGRES_EPOCH).into();
        assert_eq!(epoch.to_string(), "2000-01-01T00:00:00.000000Z");
    }
}
