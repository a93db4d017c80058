import ThicketProtocol

/// One replacement at one position of one text inside an object.
struct TextEdit {
    let path: [String]
    let position: Int
    let deleted: Int
    let inserted: String

    /// The edit as a difference of the whole object.
    func diff(in object: JSONObject?) throws(ClientError) -> ObjectDiff {
        guard let last = path.last else { throw ClientError(.invalidValue, "a path has at least one key") }
        var value = object.map(JSONValue.object)
        for key in path { value = value?[key] }
        guard case .string(let text)? = value else { throw ClientError(.misfit, "the path does not lead to a text") }
        let length = text.utf16Length
        guard position >= 0, deleted >= 0, position <= length, deleted <= length - position else {
            throw ClientError(.misfit, "place \(position), deleting \(deleted), in a text of \(length) code units")
        }
        var delta = TextDelta()
        delta.retain(position)
        delta.delete(deleted)
        delta.insert(Array(inserted.utf16))
        delta.retain(length - position - deleted)
        let edit = Operation.text(delta)
        var diff = ObjectDiff([(key: last, operation: edit)])
        for key in path.dropLast().reversed() { diff = ObjectDiff([(key: key, operation: .object(diff))]) }
        return delta.isIdentity ? ObjectDiff() : diff
    }
}
