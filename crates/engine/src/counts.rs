//! Counts that are added up over workers.

/// Defines plain counts, which are added up and compared field by field.
macro_rules! counts {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: u64,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $name {
            fn each(self, other: $name, of: impl Fn(u64, u64) -> u64) -> $name {
                $name { $($field: of(self.$field, other.$field),)* }
            }

            /// Adds another worker's part, or another part of the same.
            pub fn add(&mut self, other: &$name) {
                *self = self.each(*other, u64::saturating_add);
            }
        }
    };
}

pub(crate) use counts;

/// Adds parts to sums, place by place.
pub(crate) fn add_each<T>(sums: &mut [T], parts: &[T], add: impl Fn(&mut T, &T)) {
    for (sum, part) in sums.iter_mut().zip(parts) {
        add(sum, part);
    }
}

/// The same of lists of which the sums may be the shorter one.
pub(crate) fn add_all<T: Clone + Default>(
    sums: &mut Vec<T>,
    parts: &[T],
    add: impl Fn(&mut T, &T),
) {
    if sums.len() < parts.len() {
        sums.resize(parts.len(), T::default());
    }
    add_each(sums, parts, add);
}
