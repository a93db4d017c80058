package import ThicketClient
import ThicketProtocol
package import ThicketTree
package import ThicketTreeShape

/// What the machine wants done, in this order. Everything on which an action depends is already in the store.
package enum TreeAction: Sendable, Equatable {
    /// Make a connection; report `opened` or `closed`.
    case connect
    /// End the connection; `closed` need not be reported.
    case disconnect
    /// Send one text message.
    case send([UInt8])
    /// Call `POST tree/{owner}/batch` with this body; report `batchAnswered`.
    case batch(BatchID, [UInt8])
    /// Call `POST` or `GET tree/{owner}/children`; report `childrenListed` with this number.
    case children(Int64, ChildrenQuery)
    /// Ask the app for the content of an operation; report `provided`.
    case ask(OperationID, Node, TreePath)
    /// Seal the content of an operation from a file of the app; report `provided`.
    case spool(OperationID, path: String)
    /// Upload the spooled content of an operation; report `uploaded`.
    case upload(OperationID)
    /// Keep the sealed file of an operation's content, which is a file of the cache, until the content is sent again.
    case keepFile(OperationID)
    /// Stop what is done for an operation, and delete its spool file: it was dropped.
    case forget(OperationID)
    /// Report an event to the readers.
    case event(TreeEvent)
    case status(SyncStatus)
    /// What messages need beside the tree's connection.
    case message(MessageAction)
    /// What contents need that two devices have changed.
    case merging(MergeAction)
    /// Report an event of a shared branch.
    case sharing(ShareEvent)
    /// The server no longer accepts the token of this number.
    case tokenEnded(Int)
}

/// The answer to a batch, or its failure.
package enum BatchReply: Sendable, Equatable {
    case answer(TreeBatchAnswer)
    /// No usable answer arrived; whether the batch was made is unknown. The pause in milliseconds is what the server
    /// asked for.
    case unknown(String, retryAfter: Int64)
    /// The token was refused.
    case unauthorized
}

/// A moment, as the machine needs it.
package struct TreeTime: Sendable {
    /// Milliseconds of a clock that never goes back.
    package let monotonic: Int64
    /// Milliseconds since 1970.
    package let unix: Int64

    package init(monotonic: Int64, unix: Int64) { (self.monotonic, self.unix) = (monotonic, unix) }
}

/// What an app gives as content of a new or changed node, as far as the machine needs to know it.
package enum LocalContent: Sendable {
    /// The node has no content.
    case none
    /// The app is asked when the operation is ready.
    case ask
    /// In memory, for the record: `ContentSpool.isInline`.
    case held(NodeContent)
    /// In a file of the app.
    case source(path: String)
}
