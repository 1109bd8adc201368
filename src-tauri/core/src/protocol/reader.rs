//! A serde deserializer from JSON text into a request's type. Its errors name the field and the fault.
//!
//! serde_json's own errors are English sentences with a line and a column. Here the error is a [`Fault`]: what is wrong
//! and the path to it. It is also stricter: a field that occurs twice in an object is refused at every level, and an
//! object or array has at most [`MAX_ENTRIES`] entries. A known field that is `null` counts as absent.

mod fault;

use std::collections::HashSet;
use std::marker::PhantomData;

use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use crate::run::MAX_FILES;

pub(super) use fault::{FIELD, Fault, Hints};
use fault::{Step, What};

/// A newtype of this name is given the value's JSON text instead of its meaning.
pub(super) const AS_WRITTEN: &str = "sandtray::as_written";

/// Most entries of one object or array. The longest that a request may have is `files`.
const MAX_ENTRIES: usize = MAX_FILES;

/// Reads the parameters. Absent parameters count as an empty object.
pub(super) fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, Fault> {
    if let Some(params) = params {
        return T::deserialize(Reader(params));
    }
    let empty = RawValue::from_string("{}".to_owned()).map_err(Fault::custom)?;
    T::deserialize(Reader(&empty))
}

/// Reads an array of at most `MOST` items. A longer one is refused without keeping its items.
pub(super) fn at_most<'de, const MOST: usize, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_tuple(MOST, Collected(PhantomData))
}

/// One unread value, in text that is known to be JSON. Values are skipped instead of built, so nesting uses no stack.
struct Reader<'de>(&'de RawValue);

impl<'de> Reader<'de> {
    fn is(&self, first: u8) -> bool {
        self.0.get().as_bytes().first() == Some(&first)
    }

    fn wrong(&self, wanted: &str) -> Fault {
        let got = match self.0.get().as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't') => "true",
            Some(b'f') => "false",
            Some(b'n') => "null",
            _ => "a number",
        };
        What::Wrong { wanted: wanted.to_owned(), got: got.to_owned() }.into()
    }

    fn string(&self) -> Result<String, Fault> {
        if !self.is(b'"') {
            return Err(self.wrong("a string"));
        }
        serde_json::from_str(self.0.get()).map_err(|_| What::HalfCharacter.into())
    }

    /// The entries of an object. `named`: the client chooses the names, as in a map.
    fn entries(&self, named: bool) -> Result<Vec<(String, &'de RawValue)>, Fault> {
        if !self.is(b'{') {
            return Err(self.wrong("an object"));
        }
        let collected = serde_json::Deserializer::from_str(self.0.get()).deserialize_map(CollectEntries);
        // The text is JSON, so the only possible error is a key with an unpaired surrogate.
        let entries = collected.map_err(|_| Fault::from(What::HalfCharacterInKey))?.ok_or(What::Many(MAX_ENTRIES))?;
        let mut seen = HashSet::new();
        match entries.iter().find(|(name, _)| !seen.insert(name.as_str())) {
            Some((name, _)) => {
                let step = if named { Step::Key } else { Step::Field };
                Err(What::Twice(step(name.clone())).into())
            }
            None => Ok(entries),
        }
    }

    fn items(&self, most: usize) -> Result<Items<'de>, Fault> {
        if !self.is(b'[') {
            return Err(self.wrong("an array"));
        }
        let collected = serde_json::Deserializer::from_str(self.0.get()).deserialize_seq(CollectItems { most });
        let items = collected.map_err(Fault::custom)?.ok_or(What::Many(most))?;
        Ok(Items { left: items.into_iter().enumerate() })
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.get().as_bytes().first() {
            Some(b'{') => self.deserialize_map(visitor),
            Some(b'[') => self.deserialize_seq(visitor),
            Some(b'"') => visitor.visit_string(self.string()?),
            Some(b't') => visitor.visit_bool(true),
            Some(b'f') => visitor.visit_bool(false),
            Some(b'n') => visitor.visit_unit(),
            _ => self.deserialize_f64(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.is(b'n') { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_string(self.string()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_string(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.get() {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if !self.0.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return Err(self.wrong("a number"));
        }
        match serde_json::from_str::<f64>(self.0.get()) {
            Ok(number) if number.is_finite() => visitor.visit_f64(number),
            _ => Err(What::TooGreat.into()),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_seq(self.items(MAX_ENTRIES)?)
    }

    /// An array of at most `most` items: see [`at_most`].
    fn deserialize_tuple<V: Visitor<'de>>(self, most: usize, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_seq(self.items(most)?)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(Entries { left: self.entries(true)?.into_iter(), value: None, fields: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let left = self.entries(false)?.into_iter();
        visitor.visit_map(Entries { left, value: None, fields: Some(fields) })
    }

    /// A unit variant, given as a string.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let word = self.string()?;
        visitor.visit_enum(StrDeserializer::new(&word))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        if name == AS_WRITTEN { visitor.visit_str(self.0.get()) } else { visitor.visit_newtype_struct(self) }
    }

    // No request has fields of these types.
    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char bytes byte_buf unit unit_struct tuple_struct identifier
    }
}

struct Entries<'de> {
    left: std::vec::IntoIter<(String, &'de RawValue)>,
    value: Option<(String, &'de RawValue)>,
    /// The known fields of a struct. None for a map, which may have any names.
    fields: Option<&'static [&'static str]>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let left_out = |(name, raw): &(String, &RawValue)| {
            raw.get() == "null" && self.fields.is_some_and(|fields| fields.contains(&name.as_str()))
        };
        let Some((name, raw)) = self.left.by_ref().find(|entry| !left_out(entry)) else { return Ok(None) };
        let key = seed.deserialize(StrDeserializer::<Fault>::new(&name))?;
        self.value = Some((name, raw));
        Ok(Some(key))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let Some((name, raw)) = self.value.take() else { return Err(Fault::custom("a value before its key")) };
        let step = if self.fields.is_some() { Step::Field } else { Step::Key };
        seed.deserialize(Reader(raw)).map_err(|fault| fault.below(step(name)))
    }
}

struct Items<'de> {
    left: std::iter::Enumerate<std::vec::IntoIter<&'de RawValue>>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        let Some((index, raw)) = self.left.next() else { return Ok(None) };
        seed.deserialize(Reader(raw)).map(Some).map_err(|fault| fault.below(Step::Index(index)))
    }
}

struct Collected<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Collected<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}

/// Reads an object's entries to the end, as the parser requires. `None` if there are too many.
struct CollectEntries;

impl<'de> Visitor<'de> for CollectEntries {
    type Value = Option<Vec<(String, &'de RawValue)>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut entries, mut many) = (Vec::new(), false);
        while let Some(entry) = map.next_entry::<String, &'de RawValue>()? {
            many |= entries.len() == MAX_ENTRIES;
            if !many {
                entries.push(entry);
            }
        }
        Ok((!many).then_some(entries))
    }
}

struct CollectItems {
    most: usize,
}

impl<'de> Visitor<'de> for CollectItems {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let (mut items, mut many) = (Vec::new(), false);
        while let Some(item) = seq.next_element::<&'de RawValue>()? {
            many |= items.len() == self.most;
            if !many {
                items.push(item);
            }
        }
        Ok((!many).then_some(items))
    }
}
