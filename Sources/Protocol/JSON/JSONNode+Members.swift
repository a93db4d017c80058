extension JSONNode {
    /// The pairs of an object in order; empty for any other value.
    public var pairs: Pairs {
        let isObject = JSONTape.kind(word) == JSONTape.Kind.object
        return Pairs(
            storage: storage, index: index + 2, end: isObject ? JSONTape.end(storage.tape[index + 1]) : 0)
    }

    /// The elements of an array in order; empty for any other value.
    public var elements: Elements {
        let isArray = JSONTape.kind(word) == JSONTape.Kind.array
        return Elements(
            storage: storage, index: index + 2, end: isArray ? JSONTape.end(storage.tape[index + 1]) : 0)
    }

    /// The member with this name; nil when it is missing or this is not an object. A linear search over the keys.
    public subscript(key: String) -> JSONNode? {
        guard JSONTape.kind(word) == JSONTape.Kind.object else { return nil }
        let place = key.withBytes { storage.place(of: $0, in: index) }
        return place.map { JSONNode(storage: storage, index: $0) }
    }

    /// Whether this is a string of exactly these bytes; canonically equivalent strings are different.
    public func isText(_ text: String) -> Bool { text.withBytes { isString($0) } }

    /// Whether this is a string of exactly these bytes.
    fileprivate func isString(_ wanted: UnsafeBufferPointer<UInt8>) -> Bool {
        if JSONTape.kind(word) == JSONTape.Kind.string {
            guard JSONTape.length(word) == wanted.count + 2 else { return false }
            return withRaw { sameBytes(UnsafeBufferPointer(rebasing: $0[1..<($0.count - 1)]), wanted) }
        }
        guard JSONTape.length(word) >= wanted.count + 2, let string else { return false }
        return string.withBytes { sameBytes($0, wanted) }
    }

    /// The pairs of an object in order, with the keys as nodes; empty for any other value.
    public var members: Members {
        let isObject = JSONTape.kind(word) == JSONTape.Kind.object
        return Members(
            storage: storage, index: index + 2, end: isObject ? JSONTape.end(storage.tape[index + 1]) : 0)
    }

    /// Pairs of an object in order, with the keys not decoded.
    public struct Members: Sequence, IteratorProtocol, Sendable {
        let storage: JSONStorage
        var index: Int
        let end: Int

        /// The next pair.
        public mutating func next() -> (key: JSONNode, value: JSONNode)? {
            guard index < end else { return nil }
            defer { index = JSONTape.next(storage.tape, index + 1) }
            return (JSONNode(storage: storage, index: index), JSONNode(storage: storage, index: index + 1))
        }
    }

    /// Pairs of an object in order.
    public struct Pairs: Sequence, IteratorProtocol, Sendable {
        let storage: JSONStorage
        var index: Int
        let end: Int

        /// The next pair, its key with escapes decoded.
        public mutating func next() -> (key: String, value: JSONNode)? {
            guard index < end else { return nil }
            let key = JSONNode(storage: storage, index: index)
            let value = JSONNode(storage: storage, index: index + 1)
            index = JSONTape.next(storage.tape, index + 1)
            return (key: key.string ?? "", value: value)
        }
    }

    /// Elements of an array in order.
    public struct Elements: Sequence, IteratorProtocol, Sendable {
        let storage: JSONStorage
        var index: Int
        let end: Int

        /// The next element.
        public mutating func next() -> JSONNode? {
            guard index < end else { return nil }
            let node = JSONNode(storage: storage, index: index)
            index = JSONTape.next(storage.tape, index)
            return node
        }
    }
}

extension JSONStorage {
    /// Tape index of the member with this name in the object at `object`. It makes no node for each key it passes,
    /// because a node counts references.
    fileprivate func place(of wanted: UnsafeBufferPointer<UInt8>, in object: Int) -> Int? {
        bytes.withUnsafeBufferPointer { text in
            let end = JSONTape.end(tape[object + 1])
            var at = object + 2
            while at < end {
                if isKey(at, wanted, in: text) { return at + 1 }
                at = JSONTape.next(tape, at + 1)
            }
            return nil
        }
    }

    @inline(__always)
    private func isKey(
        _ place: Int, _ wanted: UnsafeBufferPointer<UInt8>, in text: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        let word = tape[place]
        guard JSONTape.kind(word) == JSONTape.Kind.string else {
            return JSONNode(storage: self, index: place).isString(wanted)
        }
        let start = JSONTape.offset(word) + 1
        return JSONTape.length(word) == wanted.count + 2
            && sameBytes(UnsafeBufferPointer(rebasing: text[start..<start + wanted.count]), wanted)
    }
}
