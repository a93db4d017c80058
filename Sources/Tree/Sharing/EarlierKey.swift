import ThicketCrypto

/// A key that a node had in an earlier epoch. The metadata of the node keeps it, because nodes below that were not
/// written since hang on it; readers of the branch have it anyway (decision 0067).
struct EarlierKey: Sendable {
    /// Keys of one node at most.
    static let countMax = 64

    let epoch: UInt32
    let key: NodeKey

    /// epoch (4) ‖ key (32).
    var octets: [SecureBytes] { [SecureBytes(copying: epoch.octets), key.secret] }

    /// The keys that a node keeps when it gets another one.
    ///
    /// - Throws: `tooManyKeys`: none is dropped, because something may hang on it.
    static func list(of node: OpenedNode) throws(SealFault) -> [EarlierKey] {
        try list([EarlierKey(epoch: node.record.epoch, key: node.key)] + node.metadata.earlierKeys)
    }

    fileprivate static func list(_ keys: [EarlierKey]) throws(SealFault) -> [EarlierKey] {
        guard keys.count <= countMax else { throw .tooManyKeys }
        return keys
    }
}

extension KeptNode {
    /// The earlier keys of a node that is created again.
    ///
    /// - Parameter isKept: whether it has the same key; otherwise that is the newest of the earlier ones.
    func earlierKeys(isKept: Bool) throws(SealFault) -> [EarlierKey] {
        try EarlierKey.list((isKept ? [] : [EarlierKey(epoch: 0, key: key)]) + metadata.earlierKeys)
    }
}
