import Dispatch
import ThicketProtocol
import ThicketSealed

/// The result of opening a sealed object that has no record yet.
struct FirstLook: Sendable {
    let appKey: String
    let isLive: Bool
    /// Number of operations after its snapshot.
    let tail: Int
    let packed: [UInt8]

    /// An object from an index as plain bytes, so that threads do not contend for shared reference counts.
    private struct Unopened: Sendable {
        /// The server key in UTF-8.
        let key: SIMD32<UInt8>
        /// The place of its body in the page.
        let place: Int

        /// nil when an object of a sealed bucket cannot have such a key.
        init?(_ key: String, place: Int) {
            var bytes = SIMD32<UInt8>()
            guard key.utf8.count == SealedShape.keyBytes else { return nil }
            key.withBytes { key in withUnsafeMutableBytes(of: &bytes) { $0.copyMemory(from: .init(key)) } }
            (self.key, self.place) = (bytes, place)
        }

        var keyText: String { withUnsafeBytes(of: key) { String(decoding: $0, as: UTF8.self) } }
    }

    /// What one thread needs to open objects of a page, as its own copies, so that threads do not contend for reference
    /// counts.
    private struct Means {
        let page: JSONNode
        let keys: SealedBucketKeys
        let opener: SnapshotOpener
        let author: AuthorID

        init(_ page: JSONNode, _ keys: SealedBucketKeys, _ author: AuthorID) {
            (self.page, self.keys, self.author) = (page.countedApart, keys.copied, author)
            opener = self.keys.snapshotOpener()
        }
    }

    /// nil when the object cannot be opened, or opening it yields an event to report.
    private init?(_ entry: Unopened, in text: UnsafeBufferPointer<UInt8>, _ means: Means) {
        guard let outline = SealedOutline(means.page.value(at: entry.place)),
            let object = PackedEntity.pack(outline, of: text)
        else { return nil }
        let position = outline.newest.position
        let look =
            object.tail.isEmpty
            ? Self.look(at: object, entry.key, position, means)
            : Self.lookThroughTail(of: object, entry.keyText, position, means)
        // A holder of the keys can write anything into a snapshot (`Sealing.isNamed`).
        guard let look, (try? EntityKey(look.appKey)) != nil else { return nil }
        (appKey, isLive) = (look.appKey, look.isLive)
        (tail, packed) = (object.tail.count, object.bytes)
    }

    private static func look(
        at object: PackedEntity.Packed, _ key: SIMD32<UInt8>, _ position: Int, _ means: Means
    ) -> SnapshotOpener.Look? {
        object.bytes.withUnsafeBytes { bytes in
            withUnsafeBytes(of: key) { key in
                means.opener.look(
                    at: UnsafeRawBufferPointer(rebasing: bytes[object.newest]), position: position, serverKey: key)
            }
        }
    }

    /// nil when the object fails verification or yields an event to report.
    private static func lookThroughTail(
        of object: PackedEntity.Packed, _ key: String, _ position: Int, _ means: Means
    ) -> SnapshotOpener.Look? {
        let operations = object.tail.map { Array(object.bytes[$0]) }
        guard let sealer = try? means.keys.sealer(serverKey: key),
            let opened = try? SealedObject.open(
                Array(object.bytes[object.newest]), at: position, tail: operations, author: means.author,
                place: means.keys.place(serverKey: key), with: sealer),
            opened.object.problem == nil, !opened.object.isStopped,
            opened.events.allSatisfy({ if case .changed = $0 { true } else { false } }),
            Sealing.isNamed(opened.object.log, key, by: means.keys)
        else { return nil }
        return SnapshotOpener.Look(appKey: opened.object.log.appKey, isLive: opened.object.log.object != nil)
    }

    /// Objects that one thread opens at a time; for fewer it is not worth waking another thread.
    private static let piece = 96

    /// Opens the objects of one page on all processors. The result does not depend on the distribution of the work.
    ///
    /// - Parameter entries: nil where nothing is to be opened.
    /// - Returns: one element per entry; nil as for `init`.
    static func all(
        _ entries: [IndexPage.Entry?], _ keys: SealedBucketKeys, _ author: AuthorID
    ) -> [FirstLook?] {
        guard let page: JSONNode = entries.lazy.compactMap({ $0.flatMap(node) }).first else {
            return entries.map { _ in nil }
        }
        let unopened: [Unopened?] = entries.map { entry in
            guard let entry, let node: JSONNode = node(of: entry), node.isOfDocument(page) else { return nil }
            return Unopened(entry.key.text, place: node.place)
        }
        let pieces = (entries.count + piece - 1) / piece
        return page.withDocument { text in
            guard pieces > 1 else {
                let means = Means(page, keys, author)
                return unopened.map { $0.flatMap { FirstLook($0, in: text, means) } }
            }
            return open(unopened, in: text, pieces) { Means(page, keys, author) }
        }
    }

    private static func node(of entry: IndexPage.Entry) -> JSONNode? {
        if case .node(let node)? = entry.data { node } else { nil }
    }

    private static func open(
        _ unopened: [Unopened?], in text: UnsafeBufferPointer<UInt8>, _ pieces: Int, _ means: @Sendable () -> Means
    ) -> [FirstLook?] {
        .init(unsafeUninitializedCapacity: unopened.count) { room, count in
            unopened.withUnsafeBufferPointer { unopened in
                // Text and entries are only read, and each place is written once, by the one thread that has its piece.
                nonisolated(unsafe) let (text, entries) = (text, unopened)
                nonisolated(unsafe) let places = room
                DispatchQueue.concurrentPerform(iterations: pieces) { number in
                    let own = number * piece..<min(entries.count, (number + 1) * piece)
                    // Pages of known objects contain few new ones.
                    let means = entries[own].contains { $0 != nil } ? means() : nil
                    for place in own {
                        let look = means.flatMap { means in
                            entries[place].flatMap { FirstLook($0, in: text, means) }
                        }
                        places.initializeElement(at: place, to: look)
                    }
                }
            }
            count = unopened.count
        }
    }
}
