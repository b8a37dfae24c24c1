//! A table with stable small indices: connections and sessions.

/// Items by index; indices of removed items are used again.
#[derive(Debug)]
pub(crate) struct IndexTable<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> IndexTable<T> {
    pub(crate) fn new() -> IndexTable<T> {
        IndexTable {
            items: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, item: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self.items[id as usize] = Some(item);
            return id;
        }
        self.items.push(Some(item));
        (self.items.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let item = self.items.get_mut(id as usize)?.take()?;
        self.free.push(id);
        Some(item)
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.items.get(id as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.items.get_mut(id as usize)?.as_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }

    pub(crate) fn ids(&self) -> Vec<u32> {
        (0..self.items.len() as u32)
            .filter(|&id| self.get(id).is_some())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_stable_and_used_again() {
        let mut table = IndexTable::new();
        let (a, b) = (table.insert('a'), table.insert('b'));
        assert_eq!(table.remove(a), Some('a'));
        assert_eq!(table.remove(a), None);
        assert_eq!((table.get(b), table.len()), (Some(&'b'), 1));
        assert_eq!(table.insert('c'), a);
        assert_eq!(table.ids(), [a, b]);
    }
}
