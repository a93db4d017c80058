import ThicketProtocol
import ThicketTreeShape

// Batches of trees, and lists of children (decision 0094).
extension Hub {
    /// Hands a batch to the shard as one change.
    func submit(_ request: TreeBatchRequest, of feed: BucketFeed, on channel: Channel, now: HubInstant) {
        var request = request
        if let branch = channel.branch {
            guard feed.mode == .tree, let user = channel.user, user != branch.owner else {
                return answer(channel.session, RESTAnswer.noBranch)
            }
            request.member = TreeBatchRequest.Member(user, root: branch.root)
        }
        guard feed.mode == .tree else { return answer(channel.session, RESTAnswer.noTree) }
        guard let bytes = channel.session.exchange?.call.bytes else { return }
        guard request.isReady else {
            let check = CopyCheck(
                request: request, caller: request.member?.user ?? feed.bucket.user, owner: feed.bucket.user,
                app: feed.bucket.app, directory: keyDirectory, bytes: bytes)
            return read(RESTBody(content: .copies(check), bytes: []), for: channel)
        }
        let id = request.batch.id.text
        let change = ChangeRequest(key: id, ccid: id, operation: .modify)
        // The parsed batch takes about as much memory again.
        guard let code = submit(change, on: channel, of: feed, bytes: 2 * bytes, now: now, batch: request) else {
            return
        }
        refuse([(change, code)], on: channel)
    }

    /// Hands the policy of an inbox to the shard as one change.
    func submit(_ policy: InboxPolicy, of feed: BucketFeed, on channel: Channel, now: HubInstant) {
        guard feed.mode == .tree else { return answer(channel.session, RESTAnswer.noTree) }
        guard let bytes = channel.session.exchange?.call.bytes else { return }
        let change = ChangeRequest(key: "inbox", ccid: "", operation: .modify)
        guard let code = submit(change, on: channel, of: feed, bytes: 2 * bytes, now: now, policy: policy) else {
            return
        }
        refuse([(change, code)], on: channel)
    }

    /// Asks a reader for children of nodes.
    func children(_ query: ChildrenQuery, of feed: BucketFeed, for channel: Channel) {
        var member: BranchMember?
        if let branch = channel.branch {
            guard feed.mode == .tree, feed.row != nil, let user = channel.user, user != branch.owner else {
                return answer(channel.session, RESTAnswer.noBranch)
            }
            member = BranchMember(user: user, root: branch.root, tree: feed.bucket)
        }
        guard feed.mode == .tree else { return answer(channel.session, RESTAnswer.noTree) }
        guard let cursor = cursor(query, of: feed) else {
            return answer(
                channel.session,
                RESTAnswer.invalid(
                    "invalid_parameter", "The parameter 'before' is not valid.",
                    "It is the 'next' of a page of the same list in the same order."))
        }
        guard let row = feed.row else {
            let current = codec.encode(feed.published, tag: feed.tag)
            return answer(channel.session, RESTAnswer.json(ChildrenText.empty(query.parents, current: current)))
        }
        read(
            .children(query, cursor, bucket: row, tag: feed.tag, upTo: feed.published, member: member), for: channel)
    }

    /// Asks a reader for the usage of a tree.
    func usage(of feed: BucketFeed, for channel: Channel) {
        // What the tree takes is the owner's to know.
        guard channel.branch == nil else { return answer(channel.session, RESTAnswer.noBranch) }
        guard feed.mode == .tree, let row = feed.row else { return answer(channel.session, RESTAnswer.noTree) }
        read(.usage(feed.bucket, bucket: row), for: channel)
    }

    /// nil for a cursor that is not one of this tree.
    private func cursor(_ query: ChildrenQuery, of feed: BucketFeed) -> ChildCursor? {
        switch query.order {
        case .newest:
            guard let before = query.before else { return .newest(before: .max) }
            return codec.decode(before, tag: feed.tag).map { .newest(before: $0) }
        case .tag:
            guard let before = query.before else { return .tag(after: nil) }
            return NodeTag(text: before).map { .tag(after: $0) }
        }
    }
}
