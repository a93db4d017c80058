import ThicketProtocol
import ThicketTreeShape

// Channels of members of shared branches, on the feeds of the owners (decision 0067). A missing tree, root, list or
// letter gives one answer.
extension Hub {
    /// Starts the look-up of a member's rights, once the owner's feed is open: what is published from then on is seen.
    func askMembership(_ channel: Channel, in feed: BucketFeed, now: HubInstant) {
        guard let branch = channel.branch, let user = channel.user else { return }
        channel.phase = .opening
        if !feed.joining.contains(where: { $0 === channel }) { feed.joining.append(channel) }
        // The owner has everything on a channel of the tree.
        guard feed.mode == .tree, branch.owner != user, feed.row != nil else {
            return refuse(channel, .noBranch, now: now)
        }
        read(.membership(BranchMember(user: user, root: branch.root, tree: feed.bucket)), for: channel)
    }

    /// A reader has looked a member's rights up.
    ///
    /// - Parameter head: the newest change of the tree that the reader has seen.
    func found(isReader: Bool, head: GlobalID, for channel: Channel, now: HubInstant) {
        guard case .opening = channel.phase, let feed = channel.feed, let branch = channel.branch,
            let user = channel.user
        else { return }
        // Lists that were published since.
        guard let later = feed.tail(after: head) else { return askMembership(channel, in: feed, now: now) }
        let changed = later.last { $0.branch?.root == branch.root }?.branch
        guard changed.map({ $0.readers.contains(user) }) ?? isReader else {
            return refuse(channel, .noBranch, now: now)
        }
        feed.joining.removeAll { $0 === channel }
        channel.member = BranchMember(user: user, root: branch.root, tree: feed.bucket)
        welcome(channel, to: feed, now: now)
    }

    /// Ends the channels of members whose right to read has ended with these changes, before anything of them is sent.
    func revoke(_ entries: [BucketFeed.Entry], in feed: BucketFeed) {
        for entry in entries {
            guard let branch = entry.branch, let root = branch.root else { continue }
            for channel in feed.subscribers {
                guard let member = channel.member, member.root == root, !branch.readers.contains(member.user) else {
                    continue
                }
                metrics.authorizations.add(1, .refused)
                sendRefusal(
                    channel.number, of: channel.session, .noBranch, expectsExpired: channel.expectsExpired)
                remove(channel)
            }
        }
    }

    /// Refuses what a member's channel does not have.
    func refuse(_ request: IndexRequest, on channel: Channel, now: HubInstant) {
        guard let feed = channel.feed else { return }
        var query = indexQuery(request, of: feed)
        query.oldestFirst = false
        guard query.isHeadProbe else { return send(Reply.notUnderstood(channel.number), to: channel.session) }
        // The position alone: the newest object may be outside of the branch.
        scan(channel, by: query, now: now)
        send(
            IndexMessage.empty(channel.number, current: codec.encode(query.current, tag: feed.tag)), to: channel.session
        )
        scanned(channel, isLast: true, isHeadProbe: true, now: now)
    }
}

extension InitRefusal {
    static let noBranch = InitRefusal(.unauthorized, ShareDenial.noRead.rawValue, limit: .branch)
}

extension RESTAnswer {
    /// The one answer about a branch of which the user is not a reader, or that does not exist.
    static let noBranch = of(BatchRefusal(.unauthorized, .permission))
}
