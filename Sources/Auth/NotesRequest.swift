import ThicketProtocol

/// The user's right to encrypted notes, under the names that the old notes app uses.
enum NotesRequest {
    static func answer(
        _ asked: AccountService.Asked, _ service: inout AccountService
    ) throws(AccountRefusal) -> HTTPResponse {
        let account = try service.user(asked).account
        let standing = try service.directory { (d) throws(DirectoryError) in
            try d.notes(of: account.user, in: account.app)
        }
        guard let standing else { throw .notHere("this app keeps no encrypted notes") }
        return AccountAnswer.success([
            "Pro": .bool(standing.isPro), "ProReceipt": standing.receipt.map(JSONValue.string) ?? .null,
            "notesMax": standing.notesMax.map { .number(JSONNumber(Int64($0))) } ?? .null,
        ])
    }
}
