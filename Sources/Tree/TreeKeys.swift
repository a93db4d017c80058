public import ThicketCrypto
public import ThicketTreeShape

/// The keys of one account's tree in one app, derived from the tree secret of the account's bundle.
///
/// | value | derivation |
/// | --- | --- |
/// | key of a trunk | HKDF-SHA-256(tree secret, salt empty, `thicket/trunk/1` ‖ 0 ‖ lp(app) ‖ lp(trunk) ‖ epoch(4)) |
/// | child salt of a trunk | the same with `thicket/trunk-salt/1`, without the epoch: tags do not change with epochs |
///
/// A trunk's key is used like a node's key: its subkey `children` wraps the keys of the nodes below. The inbox has no
/// secret salt (`Trunk.inboxSalt`).
public struct TreeKeys: Sendable {
    /// The tree.
    public let tree: TreePlace
    private let secret: SecureBytes

    /// - Parameters:
    ///   - secret: `AccountBundle.treeSecret`, 32 bytes.
    ///   - tree: the account's tree in the app.
    public init(secret: SecureBytes, tree: TreePlace) { (self.secret, self.tree) = (secret, tree) }

    /// What wraps and tags the nodes directly below a trunk.
    ///
    /// - Parameters:
    ///   - trunk: the trunk.
    ///   - epoch: the epoch of the trunk's key, from 0.
    public func parent(_ trunk: Trunk, epoch: UInt32 = 0) -> ParentKeys {
        guard let key = try? NodeKey(derived("thicket/trunk/1", trunk, epoch.octets)) else {
            preconditionFailure("32 derived bytes are a node key")
        }
        let salt = trunk == .inbox ? nil : derived("thicket/trunk-salt/1", trunk, [])
        return ParentKeys(.trunk(trunk), epoch: epoch, key: key, childSalt: salt)
    }

    private func derived(_ label: StaticString, _ trunk: Trunk, _ ending: [UInt8]) -> SecureBytes {
        let info = LabelledBytes(label, [tree.app.text, trunk.rawValue]).octets + ending
        guard let derived = try? HKDF.derive(.sha256, secret: secret, info: info) else {
            preconditionFailure("32 bytes can be derived with a short info")
        }
        return derived
    }
}

/// What is needed of a parent to make, open and name the nodes directly below it.
public struct ParentKeys: Sendable {
    /// The parent.
    public let parent: NodeParent
    /// The epoch of the parent's key. A node that is written below gets the same.
    public let epoch: UInt32
    /// Wraps the keys of the nodes below.
    private let childrenKey: SecureBytes
    /// Of earlier keys of the parent, the newest first: nodes that were not written since hang on them.
    private let earlierKeys: [SecureBytes]
    /// Tags their names; nil in the inbox, where ids are tagged.
    private let childSalt: SecureBytes?

    init(
        _ parent: NodeParent, epoch: UInt32, key: NodeKey, childSalt: SecureBytes?, earlier: [EarlierKey] = []
    ) {
        (self.parent, self.epoch, self.childSalt) = (parent, epoch, childSalt)
        (childrenKey, earlierKeys) = (Self.childrenKey(key), earlier.map { Self.childrenKey($0.key) })
    }

    private static func childrenKey(_ key: NodeKey) -> SecureBytes {
        guard let children = try? key.subkey(.children) else { preconditionFailure("a node key has subkeys") }
        return children
    }

    /// Whether nodes below may hang on an earlier key, of another epoch.
    public var hasEarlierKeys: Bool { !earlierKeys.isEmpty }

    /// The tag of a node below the parent: of its name, or of its id in the inbox.
    public func tag(of name: NodeName, _ node: NodeID) -> NodeTag {
        guard let childSalt else { return NodeTag(inInbox: node) }
        let tag = childSalt.withUnsafeBytes { try? NodeTag(of: name.octets, salt: Array($0)) }
        guard let tag else { preconditionFailure("a name is UTF-8 of at most \(NodeName.bytesMax) bytes") }
        return tag
    }

    /// Wraps a node's key: suite ‖ nonce ‖ AES-256-GCM under the children key ‖ tag.
    ///
    /// - Parameter epoch: of the node's record; nil: the parent's, which only the root of a shared branch has not.
    func wrap(
        _ key: NodeKey, of node: NodeID, epoch: UInt32? = nil, in tree: TreePlace, _ random: TreeRandom
    ) -> RecordWrap {
        let sealed = try? SealedMessage.seal(
            key.secret, key: childrenKey, data: wrapData(node, epoch ?? self.epoch, tree), nonce: random.nonce)
        guard let sealed else { preconditionFailure("a subkey has the length of a key") }
        return RecordWrap(.parent, sealed: sealed)
    }

    /// - Returns: the key, and whether the parent's newest key wraps it; nil for a wrap of another node, parent, epoch
    ///   or tree, and for a damaged one.
    func unwrap(
        _ wrap: RecordWrap, of node: NodeID, epoch: UInt32? = nil, in tree: TreePlace
    ) -> (key: NodeKey, isNewest: Bool)? {
        let data = wrapData(node, epoch ?? self.epoch, tree)
        for (place, key) in ([childrenKey] + earlierKeys).enumerated() {
            guard let secret = try? SealedMessage.openSecret(wrap.sealed, key: key, data: data) else { continue }
            return (try? NodeKey(secret)).map { ($0, place == 0) }
        }
        return nil
    }

    /// `thicket/node-wrap/1` ‖ 0 ‖ lp(owner) ‖ lp(app) ‖ lp(node id) ‖ lp(parent) ‖ lp(epoch, 4 bytes).
    private func wrapData(_ node: NodeID, _ epoch: UInt32, _ tree: TreePlace) -> [UInt8] {
        let names = [tree.owner.text, tree.app.text, node.text, parent.text]
        let epoch = epoch.octets
        return LabelledBytes("thicket/node-wrap/1", names).octets + UInt16(epoch.count).octets + epoch
    }
}

extension LabelledBytes {
    /// - Parameter fields: names within `Limits`, far below the longest field.
    fileprivate init(_ label: StaticString, _ fields: [String]) {
        self.init(label)
        for field in fields {
            guard (try? add(field.utf8)) != nil else { preconditionFailure("a name is shorter than a field") }
        }
    }
}
