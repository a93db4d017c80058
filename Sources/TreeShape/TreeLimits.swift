import ThicketCrypto

/// All bounds of records of the tree, with their units. The server refuses what is outside; devices never write it.
public enum TreeLimits {
    /// Bytes of a record as compact JSON, without the server's stamps (treesystem 4.3).
    public static let recordBytesMax = 65_536
    /// Bytes that the server's stamps add to it at most: two numbers and a user name.
    public static let stampBytesMax = 1_024
    /// Levels of JSON in a record: the record, the list of wraps, a wrap; or `l`, its members, a member.
    static let jsonDepthMax = 4
    /// Levels of nodes below a trunk (treesystem 4.8, rule 3): a child of a trunk is at depth 1.
    public static let depthMax = 64
    /// Wrapped node keys of one record. A record of 64 KiB has room for about as many wraps of users.
    public static let wrapsMax = 256
    /// Members of a shared branch: the list and a wrap for each of them fit into a record.
    public static let shareMembersMax = 150
    /// Bytes of a key that is wrapped under the parent's key: suite, nonce, 32 bytes, tag.
    public static let parentWrapBytes: Int = SealedMessage.extraBytes + NodeKey.bytesCount
    /// Bytes of a key that is wrapped with a password, whose parameters are in the wrap.
    public static let passwordWrapBytesMax = 256
    /// Letters of the id of a key: `PublicKeys.id` has 32.
    public static let keyIDBytesMax = 64
    /// Bytes to which metadata is padded before it is sealed, so that its length does not reveal the name's.
    public static let metadataStep = 64
    /// Bytes of metadata before it is sealed, padded.
    public static let metadataBytesMax = 16_384
    /// Bytes of the plain header of content (treesystem 4.5).
    public static let contentHeaderBytes = 64
    /// Bytes of the shortest sealed content: a header and a tag.
    public static let contentBytesMin: Int = contentHeaderBytes + AEADSuite.tagBytes
    /// Sealed bytes of content inside a record; larger content is a blob (treesystem 4.1).
    public static let inlineBytesMax = 8_192
    /// Milliseconds since 1970 of the latest time in a record: the end of the year 9999.
    public static let timeMax: Int64 = 253_402_300_799_999
    /// The largest version of a node: JavaScript reads it without loss.
    public static let versionMax: Int64 = 1 << 53 - 1

    /// Operations of one batch.
    public static let batchOperationsMax = 1_000
    /// Changes that one batch makes: each put and each removed node is one. A larger branch is removed in parts.
    public static let batchChangesMax = 1_000
    /// Bytes of a batch as it is sent: its records are decided in one time slice of the server.
    public static let batchBytesMax = 2_097_152
    /// Levels of JSON in a batch: the batch, its list, an operation, and those of a record.
    static let batchDepthMax: Int = 3 + jsonDepthMax
    /// Nodes that all operations of a batch list in `known` together.
    public static let knownNodesMax = 16_384
    /// Nodes that an answer lists of those that one removal of a branch has left; `left` counts all.
    public static let survivorsListedMax = 100
    /// Nodes that an answer lists of those that all removals of the batch have left.
    public static let batchSurvivorsMax = 1_000
    /// Nodes directly in an inbox that others have sent, if an operator sets no other number; up to
    /// `inboxNodesCeiling`.
    public static let inboxNodesMax = 10_000
    /// What a server counts of an inbox: a bound above it would not be one.
    public static let inboxNodesCeiling = 100_000
    /// Nodes directly in an inbox that one account has sent.
    public static let inboxNodesPerSenderMax = 1_000
    /// Nodes that one account sends into one inbox in a minute; nodes below them are not counted.
    public static let messagesPerMinuteMax = 100
    /// Accounts in each list of an inbox policy.
    public static let policyListMax = 1_000
    /// Bytes of an inbox policy as it is sent: two lists of long names.
    public static let policyBytesMax = 1_048_576
    /// Nodes of one page of children if the query names no other number.
    public static let childrenDefault = 100
    /// Nodes of one answer with children: parents times nodes per parent.
    public static let childrenMax = 1_000
    /// Parents of one query.
    public static let childrenParentsMax = 100
    /// Bytes of a query for the children of many parents.
    public static let childrenQueryBytesMax = 16_384
    /// Bytes of records after which a page of children ends. The list of each parent has at least one node, if any.
    public static let childrenBytesMax = 4_194_304
}
