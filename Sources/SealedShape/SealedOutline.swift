import ThicketProtocol

/// The ranges of a sealed object's texts in the message that brought it, for readers that want bytes without copies.
package struct SealedOutline: Sendable {
    package typealias Snapshot = (position: Int, text: Range<Int>)

    /// Snapshots except the newest, by position, ascending.
    package private(set) var older = [Snapshot]()
    /// The snapshot that counts.
    package let newest: Snapshot
    /// Sealed operations, the newest first.
    package private(set) var tail = [Range<Int>]()

    /// - Returns: nil for a node that is not a `SealedEntity`, and for texts with escapes, which do not appear
    ///   literally.
    package init?(_ node: JSONNode) {
        guard node.kind == .object, node.count == 3, node["z"]?.int64 == SealedEntity.shape,
            let named = node["s"], named.kind == .object,
            (1...SealedLimits.snapshotsMax).contains(named.count), let list = node["d"], list.kind == .array
        else { return nil }
        var newest: Snapshot?
        for (key, value) in named.pairs {
            guard let position = SealedEntity.position(key), let text = value.plainText else {
                return nil
            }
            let found: Snapshot = (position, text)
            guard let known = newest else {
                newest = found
                continue
            }
            let isNewer = position > known.position
            older.append(isNewer ? known : found)
            if isNewer { newest = found }
        }
        guard let newest else { return nil }
        self.newest = newest
        older.sort { $0.position < $1.position }
        tail.reserveCapacity(list.count)
        for element in list.elements {
            guard let text = element.plainText else { return nil }
            tail.append(text)
        }
    }
}
