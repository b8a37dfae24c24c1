//! An allocator that tells of each call, for tests that count.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator. Its function is told the bytes that a call takes, and those that it gives back; it must not
/// allocate.
pub struct ReportingAllocator(pub fn(usize, usize));

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for ReportingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        (self.0)(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        (self.0)(0, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        (self.0)(new_size, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
