//! Counts that are added up over workers.

/// Counts that are put together field by field.
pub(crate) trait Counts: Copy {
    /// Two of them as one.
    fn combine(self, other: Self, of: &impl Fn(u64, u64) -> u64) -> Self;
}

impl Counts for u64 {
    fn combine(self, other: u64, of: &impl Fn(u64, u64) -> u64) -> u64 {
        of(self, other)
    }
}

/// Defines plain counts, which are added up and compared field by field.
macro_rules! counts {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: $count:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $($(#[$doc])* pub $field: $count,)*
        }

        impl $crate::counts::Counts for $name {
            fn combine(self, other: $name, of: &impl Fn(u64, u64) -> u64) -> $name {
                $name { $($field: self.$field.combine(other.$field, of),)* }
            }
        }

        impl $name {
            /// Adds another worker's part, or another part of the same.
            pub fn add(&mut self, other: &$name) {
                *self = $crate::counts::Counts::combine(*self, *other, &u64::saturating_add);
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

/// Adds lists up, of which the sums may be the shorter one.
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
