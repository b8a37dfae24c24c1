//! Tests of shim/pool.c.

use std::ffi::c_void;

unsafe extern "C" {
    fn pg_pool_get(size: usize) -> *mut c_void;
    fn pg_pool_put(memory: *mut c_void, size: usize);
}

/// A piece of the pool's memory, full of one byte.
struct Piece(*mut u8, usize, u8);

// SAFETY: it belongs to whoever has it, like a Box.
unsafe impl Send for Piece {}

impl Piece {
    fn new(size: usize, byte: u8) -> Self {
        // SAFETY: the pool gives at least `size` bytes, aligned as by malloc.
        unsafe {
            let memory: *mut u8 = pg_pool_get(size).cast();
            assert!(!memory.is_null() && (memory as usize).is_multiple_of(16));
            memory.write_bytes(byte, size);
            Piece(memory, size, byte)
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: written when it was made, and given back once, with its size.
        unsafe {
            let bytes = std::slice::from_raw_parts(self.0, self.1);
            assert!(bytes.iter().all(|b| *b == self.2), "used by two at once");
            pg_pool_put(self.0.cast(), self.1);
        }
    }
}

#[test]
fn memory_of_the_pool_belongs_to_one_at_a_time() {
    let sizes = [1, 63, 64, 65, 190, 1124, 2047, 2048, 2049, 9000];
    let threads: Vec<_> = (0..3u8)
        .map(|seed| {
            let (give, given) = std::sync::mpsc::sync_channel::<Piece>(100);
            let other = std::thread::spawn(move || {
                // Some are kept for a while, so that they come back out of order.
                let mut kept = std::collections::VecDeque::new();
                for piece in given {
                    kept.push_back(piece);
                    if kept.len() > 70 {
                        drop(kept.pop_front());
                        drop(kept.pop_back());
                    }
                }
            });
            let one = std::thread::spawn(move || {
                for n in 0..3000usize {
                    let size = sizes[(n / 100 + n % 2) % sizes.len()];
                    let piece = Piece::new(size, seed.wrapping_add(n as u8));
                    if n % 7 != 0 {
                        give.send(piece).unwrap();
                    }
                }
            });
            [one, other]
        })
        .collect();
    for thread in threads.into_iter().flatten() {
        thread.join().unwrap();
    }
}
