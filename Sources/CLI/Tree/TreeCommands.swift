/// The commands `thicket tree …`.
enum TreeCommands {
    static func run(_ call: Call) async throws(Failure) {
        switch call.name.dropFirst("tree ".count) {
        case "ls": try await TreeListing.list(call)
        case "tree": try await TreeListing.outline(call)
        case "du": try await TreeListing.usage(call)
        case "find": try await TreeListing.find(call)
        case "log": try await TreeListing.log(call)
        case "cat": try await GetCall.cat(call)
        case "get": try await GetCall.run(call)
        case "put": try await PutCall.run(call)
        case "mkdir": try await TreeChanges.makeContainers(call)
        case "mv": try await TreeChanges.move(call)
        case "rm": try await TreeChanges.remove(call)
        case "queue": try await TreeSync.queue(call)
        case "queue retry": try await TreeSync.retry(call)
        case "queue discard": try await TreeSync.discard(call)
        case "pull": try await TreeSync.pull(call)
        case "watch": try await TreeWatch.run(call)
        case "send": try await SendCall.send(call)
        case "inbox": try await InboxCall.run(call)
        case "policy": try await PolicyCall.run(call)
        case "signal": try await SendCall.signal(call)
        case "share": try await ShareCall.share(call)
        case "perm": try await ShareCall.setPermissions(call)
        case "unshare": try await ShareCall.unshare(call)
        case "shared": try await SharedListing.run(call)
        case "invite": try await InviteCall.invite(call)
        case "accept": try await InviteCall.accept(call)
        case "leave": try await InviteCall.leave(call)
        case "burn": try await SendCall.burn(call)
        case "audit": try await TreeAudit.run(call)
        case "export": try await TreeExport.run(call)
        case "import": try await TreeImport.run(call)
        default: throw Failure("the command '\(call.name)' is declared and not written")
        }
    }
}
