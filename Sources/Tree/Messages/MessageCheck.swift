import ThicketCrypto
public import ThicketKeyLog
import ThicketProtocol
import ThicketTreeShape

/// Whether records of other accounts are what they say (treesystem 4.9). Everything that needs no keys is checked
/// before the author's keys are looked up.
public enum MessageCheck {
    /// The statement of a message that was opened, compared with its record.
    ///
    /// - Returns: the statement; its signature, and the record's, are not verified yet.
    /// - Throws: `OriginFault`.
    public static func statement(of node: OpenedNode) throws(OriginFault) -> OriginStatement {
        let signature = try signature(of: node)
        guard let octets = node.metadata.origin else { throw .noStatement }
        let statement = try OriginStatement(octets: octets)
        let fields = statement.fields
        guard fields.author == signature.author, fields.keyID.utf8.elementsEqual(signature.keyID.utf8) else {
            throw .otherAuthor
        }
        try checkPlace(of: statement, node)
        try compare(node, with: fields.nodes[0])
        return statement
    }

    /// The statement of a message that its receiver has moved: the record is sealed by the receiver, so only the
    /// statement names the author. An edited content is the receiver's own.
    ///
    /// - Returns: nil for a node that is not a message.
    /// - Throws: `OriginFault`.
    public static func keptStatement(of node: OpenedNode) throws(OriginFault) -> OriginStatement? {
        guard let octets = node.metadata.origin else { return nil }
        let statement = try OriginStatement(octets: octets)
        try checkPlace(of: statement, node)
        return statement
    }

    private static func checkPlace(of statement: OriginStatement, _ node: OpenedNode) throws(OriginFault) {
        let fields = statement.fields
        guard fields.app == node.tree.app else { throw .otherApp }
        guard fields.recipients.contains(node.tree.owner) else { throw .notRecipient }
        guard fields.nodes[0].id == node.id else { throw .otherNode }
    }

    /// Verifies a message with keys of its author.
    ///
    /// - Parameters:
    ///   - node: the message.
    ///   - statement: what `statement(of:)` has returned for it.
    ///   - keys: the verified keys of the author, of the id that the statement names.
    /// - Throws: `badSignature`, `badStatement`.
    public static func verify(
        _ node: OpenedNode, _ statement: OriginStatement, _ keys: PublicKeys
    ) throws(OriginFault) {
        guard statement.isSigned(by: keys) else { throw .badStatement }
        try verifySignature(of: node, keys)
    }

    /// Verifies an attachment of a message.
    ///
    /// - Parameters:
    ///   - node: the attachment.
    ///   - statement: the verified statement of the message above it.
    ///   - keys: the author's.
    /// - Throws: `OriginFault`.
    public static func verify(
        attachment node: OpenedNode, of statement: OriginStatement, _ keys: PublicKeys
    ) throws(OriginFault) {
        let signature = try signature(of: node)
        guard signature.author == statement.fields.author, signature.keyID.utf8.elementsEqual(keys.id.utf8) else {
            throw .otherAuthor
        }
        guard node.record.parent == .node(statement.fields.nodes[0].id),
            let listed = statement.fields.nodes.dropFirst().first(where: { $0.id == node.id })
        else { throw .otherNode }
        try compare(node, with: listed)
        try verifySignature(of: node, keys)
    }

    private static func signature(of node: OpenedNode) throws(OriginFault) -> RecordSignature {
        guard let signature = node.record.signature else { throw .unsigned }
        guard node.record.stamps.sender.map({ $0 == signature.author }) ?? true else { throw .otherSender }
        return signature
    }

    private static func verifySignature(of node: OpenedNode, _ keys: PublicKeys) throws(OriginFault) {
        guard node.record.signature?.keyID.utf8.elementsEqual(keys.id.utf8) == true,
            RecordSignature.verify(node.record, node.id, in: node.tree, with: keys.identity)
        else { throw .badSignature }
    }

    private static func compare(_ node: OpenedNode, with listed: OriginNode) throws(OriginFault) {
        switch (node.record.data, listed.content) {
        case (nil, nil): break
        case (let data?, let content?): if !content.isContent(of: data) { throw .otherContent }
        case (nil, _?), (_?, nil): throw .otherContent
        }
    }
}
