import Synchronization

#if os(Linux)
    import Glibc

    // Linux only: inotify. Apple platforms use PollingSignal, until FSEvents implement the protocol.
    /// Uses the kernel's notifications, with a scan now and then, because network file systems do not report all
    /// changes.
    final class InotifySignal: FolderSignal {
        private let watch: Int32
        private let timer: PollingSignal
        private let files = Mutex(WrittenFiles())

        /// nil when the kernel has no more watches, or the folder cannot be watched.
        init?(folder: String, everyMilliseconds milliseconds: Int32) {
            guard let timer = PollingSignal(everyMilliseconds: milliseconds) else { return nil }
            let opened = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
            guard opened >= 0 else { return nil }
            guard inotify_add_watch(opened, folder, WrittenFiles.events) >= 0 else {
                close(opened)
                return nil
            }
            watch = opened
            self.timer = timer
        }

        deinit { close(watch) }

        func wait() -> Bool { timer.wait(besides: watch) { readEvents() } }

        /// Reads the kernel's events. Returns false if a scan of the folder would find nothing new.
        private func readEvents() -> Bool {
            files.withLock { files in
                var isNews = false
                var bytes = [UInt8](repeating: 0, count: 1 << 14)
                while case let count:Int = read(watch, &bytes, bytes.count), count > 0 {
                    if files.apply(bytes[..<count]) { isNews = true }
                }
                return isNews
            }
        }

        func isWritten(_ name: String) -> Bool {
            files.withLock { files in
                // Unread events may report another write; they will cause a wakeup soon.
                var waiting: Int32 = 0
                guard ioctl(watch, UInt(FIONREAD), &waiting) == 0, waiting == 0 else { return false }
                return files.contains(name)
            }
        }

        func stop() { timer.stop() }
    }

    /// The files of a folder that were written and closed, or moved in as a whole, and not written since.
    struct WrittenFiles {
        /// Names as bytes, in the kernel's form.
        private var names = Set<[UInt8]>()

        /// Most names that are held; beyond it all are forgotten, and their files wait until they are unchanged for a
        /// while.
        static let namesMax = 4_096

        private static let whole = UInt32(IN_CLOSE_WRITE) | UInt32(IN_MOVED_TO)
        private static let begun = UInt32(IN_CREATE) | UInt32(IN_MODIFY)
        /// The events that are requested from the kernel.
        static let events =
            whole | begun | UInt32(IN_MOVED_FROM) | UInt32(IN_DELETE) | UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF)

        func contains(_ name: String) -> Bool { names.contains(Array(name.utf8)) }

        /// Reads events in the kernel's format, one after the other (inotify(7)): watch, mask, cookie and length of the
        /// name, each of 32 bits, then the name, padded with zeros.
        ///
        /// - Returns: whether a scan is useful: a file that is being written is not scanned before it is closed.
        mutating func apply(_ events: ArraySlice<UInt8>) -> Bool {
            var isNews = false
            events.withUnsafeBytes { bytes in
                var place = 0
                while place + 16 <= bytes.count {
                    let mask = bytes.loadUnaligned(fromByteOffset: place + 4, as: UInt32.self)
                    let length = Int(bytes.loadUnaligned(fromByteOffset: place + 12, as: UInt32.self))
                    place += 16
                    guard length <= bytes.count - place else { break }
                    if apply(mask, bytes[place..<(place + length)].prefix { $0 != 0 }) { isNews = true }
                    place += length
                }
            }
            return isNews
        }

        private mutating func apply(_ mask: UInt32, _ name: Slice<UnsafeRawBufferPointer>) -> Bool {
            if mask & UInt32(IN_Q_OVERFLOW) != 0 {
                names.removeAll()
            } else if mask & Self.whole != 0 {
                if names.count >= Self.namesMax { names.removeAll() }
                names.insert(Array(name))
            } else {
                names.remove(Array(name))
            }
            return mask & UInt32(IN_MODIFY) == 0
        }
    }
#endif
