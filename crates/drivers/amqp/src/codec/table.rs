//! Field tables (§4.2.5.5): named values of many types.

use super::error::EncodeError;
use super::wire::{Field, FieldReader, put_long, put_short};

/// A table in wire form, without its length.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Table<'a>(&'a [u8]);

/// A value in a table, of the types that clients and RabbitMQ exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// `t`
    Bool(bool),
    /// `b` `B` `s` `u` `I` `i` `l` `L`: any integer.
    Int(i64),
    /// `S`
    Long(&'a [u8]),
    /// `F`
    Table(Table<'a>),
    /// Any other type, its value unread.
    Other(u8),
}

impl<'a> Table<'a> {
    /// A table from its wire form without the length. Not checked: [`Table::iter`] ends where it
    /// is malformed.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Table(bytes)
    }

    /// The wire form, without the length.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Its entries in their order, up to the first malformed one.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Value<'a>)> + use<'a> {
        let mut reader = FieldReader(self.0);
        std::iter::from_fn(move || Some((reader.short()?, value(&mut reader)?)))
    }

    /// The value of this name, if there is one.
    pub fn find(&self, name: &str) -> Option<Value<'a>> {
        self.iter()
            .find(|(key, _)| *key == name.as_bytes())
            .map(|(_, value)| value)
    }
}

impl<'a> Field<'a> for Table<'a> {
    fn get(reader: &mut FieldReader<'a>) -> Option<Self> {
        reader.long().map(Table::from_bytes)
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        put_long(self.as_bytes(), out)
    }
}

impl std::fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |(key, value)| (String::from_utf8_lossy(key).into_owned(), value);
        f.debug_map().entries(self.iter().map(text)).finish()
    }
}

fn value<'a>(r: &mut FieldReader<'a>) -> Option<Value<'a>> {
    let kind = r.u8()?;
    Some(match kind {
        b't' => Value::Bool(r.u8()? != 0),
        b'b' => Value::Int(i64::from(r.u8()? as i8)),
        b'B' => Value::Int(i64::from(r.u8()?)),
        b's' => Value::Int(i64::from(r.u16()? as i16)),
        b'u' => Value::Int(i64::from(r.u16()?)),
        b'I' => Value::Int(i64::from(r.u32()? as i32)),
        b'i' => Value::Int(i64::from(r.u32()?)),
        b'l' | b'L' => Value::Int(r.u64()? as i64),
        b'S' => Value::Long(r.long()?),
        b'F' => Value::Table(Table(r.long()?)),
        b'A' | b'x' => {
            r.long()?;
            Value::Other(kind)
        }
        b'f' => {
            r.take(4)?;
            Value::Other(kind)
        }
        b'd' | b'T' => {
            r.take(8)?;
            Value::Other(kind)
        }
        b'D' => {
            r.take(5)?;
            Value::Other(kind)
        }
        b'V' => Value::Other(kind),
        _ => return None,
    })
}

/// Builds a [`Table`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableBuf(Vec<u8>);

impl TableBuf {
    pub fn as_table(&self) -> Table<'_> {
        Table(&self.0)
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an entry; [`Value::Int`] as a 64-bit number, [`Value::Other`] as no value.
    ///
    /// # Errors
    /// A name of more than 255 bytes, a string or table of more than 4 GiB. Nothing was added.
    pub fn push(&mut self, name: &str, value: Value<'_>) -> Result<&mut Self, EncodeError> {
        let at = self.0.len();
        self.insert(name, value)
            .inspect_err(|_| self.0.truncate(at))
            .map(|()| self)
    }

    fn insert(&mut self, name: &str, value: Value<'_>) -> Result<(), EncodeError> {
        put_short(name.as_bytes(), &mut self.0)?;
        match value {
            Value::Bool(value) => self.0.extend_from_slice(&[b't', u8::from(value)]),
            Value::Int(value) => {
                self.0.push(b'l');
                self.0.extend_from_slice(&value.to_be_bytes());
            }
            Value::Long(value) => {
                self.0.push(b'S');
                put_long(value, &mut self.0)?;
            }
            Value::Table(value) => {
                self.0.push(b'F');
                put_long(value.0, &mut self.0)?;
            }
            Value::Other(_) => self.0.push(b'V'),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_put_in_is_found() {
        let mut inner = TableBuf::default();
        inner.push("connection.blocked", Value::Bool(true)).unwrap();
        let mut table = TableBuf::default();
        table
            .push("product", Value::Long(b"pubgauge"))
            .unwrap()
            .push("x-max-length", Value::Int(-7))
            .unwrap()
            .push("capabilities", Value::Table(inner.as_table()))
            .unwrap();
        let table = table.as_table();
        assert_eq!(table.find("product"), Some(Value::Long(b"pubgauge")));
        assert_eq!(table.find("x-max-length"), Some(Value::Int(-7)));
        let Some(Value::Table(inner)) = table.find("capabilities") else {
            panic!("no table");
        };
        assert_eq!(inner.find("connection.blocked"), Some(Value::Bool(true)));
        assert_eq!(table.find("nothing"), None);
    }

    #[test]
    fn every_type_has_its_length() {
        let wire = b"\x01at\x01\x01bb\xff\x01cB\xff\x01ds\xff\xff\x01eu\xff\xff\x01fI\xff\xff\xff\xff\x01gi\xff\xff\xff\xff\x01hl\xff\xff\xff\xff\xff\xff\xff\xff\x01jf0000\x01kd00000000\x01lD00000\x01mS\0\0\0\x01x\x01nA\0\0\0\0\x01oT00000000\x01pF\0\0\0\0\x01qV\x01rx\0\0\0\0\x01zt\0";
        let names: Vec<u8> = Table(wire).iter().map(|(name, _)| name[0]).collect();
        assert_eq!(names, b"abcdefghjklmnopqrz");
        assert_eq!(Table(wire).find("z"), Some(Value::Bool(false)));
        assert_eq!(Table(wire).find("e"), Some(Value::Int(65_535)));
    }

    #[test]
    fn what_does_not_fit_adds_nothing() {
        let mut table = TableBuf::default();
        let long = "x".repeat(256);
        assert!(table.push(&long, Value::Bool(true)).is_err());
        assert!(table.is_empty());
    }

    proptest! {
        #[test]
        fn nothing_panics_and_it_ends(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Table(&bytes).iter().count() <= 300);
        }
    }
}
